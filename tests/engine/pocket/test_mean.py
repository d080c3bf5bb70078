"""engine.pocket.mean: the weights between two trainings."""

import sys
from pathlib import Path

import pytest
import torch
from safetensors import safe_open
from safetensors.torch import load_file, save_file

from engine.pocket import mean
from engine.pocket.mean import write_mean


def saved(path: Path, *values: float, dtype: torch.dtype = torch.bfloat16) -> Path:
    """A file of weights with one matrix."""
    save_file({"layer": torch.tensor([values], dtype=dtype)}, path, {"format": "pt"})
    return path


def test_it_is_half_way_in_the_type_of_the_weights(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its file says what the first one's says of itself."""
    one, other = saved(tmp_path / "one", 1.0, -4.0), saved(tmp_path / "other", 2.0, 8.0)
    monkeypatch.setattr(sys, "argv", ["mean", str(one), str(other), "--out", str(tmp_path / "out")])
    mean.main()
    found = load_file(tmp_path / "out")["layer"]
    assert (found.dtype, found.tolist()) == (torch.bfloat16, [[1.5, 2.0]])
    with safe_open(tmp_path / "out", "pt") as file:
        assert file.metadata() == {"format": "pt"}


def test_it_may_be_nearer_to_one_of_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By the share of the first."""
    one, other = saved(tmp_path / "one", 4.0, -4.0), saved(tmp_path / "other", 0.0, 8.0)
    monkeypatch.setattr(sys, "argv", ["mean", str(one), str(other), "--share", "0.25", "--out", str(tmp_path / "out")])
    mean.main()
    assert load_file(tmp_path / "out")["layer"].tolist() == [[1.0, 5.0]]


def test_another_architecture_is_refused(tmp_path: Path) -> None:
    """Nothing is written."""
    one, other = saved(tmp_path / "one", 1.0, 2.0), saved(tmp_path / "other", 1.0, 2.0, 3.0)
    with pytest.raises(ValueError, match="different architectures"):
        write_mean(one, other, tmp_path / "out")
    assert not (tmp_path / "out").exists()
