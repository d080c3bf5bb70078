"""Adapters in the worker's memory, and what happens to one that cannot be loaded."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch

from engine.adapter_ref import CONFIG_FILE, TENSORS_FILE, ZERO_LORA_INT_ID
from engine.worker.lora_registry import AdapterTensors, LoraRegistry, read_directory, require_fitting, require_whole

NAME_A, NAME_B = "m.q_proj.lora_A.weight", "m.q_proj.lora_B.weight"


def adapter(value: float = 1.0, rank: int = 2, inputs: int = 5) -> AdapterTensors:
    """An adapter with one module."""
    return AdapterTensors(
        {"r": rank}, {NAME_A: torch.full((rank, inputs), value), NAME_B: torch.full((3, rank), value)}
    )


def registry(capacity: int = 2) -> LoraRegistry:
    """An empty registry for a model with that one module."""
    return LoraRegistry(capacity, adapter(0.0, rank=1), max_rank=4)


def write(path: Path, what: AdapterTensors) -> str:
    """A PEFT directory; returns its path."""
    path.mkdir(parents=True)
    for name, data in what.files().items():
        (path / name).write_bytes(data)
    return str(path)


def test_what_was_written_is_read_back(tmp_path: Path) -> None:
    """Both files, values and configuration."""
    path = write(tmp_path / "1", adapter(0.5))
    read = read_directory(Path(path))
    assert read.config == {"r": 2}
    assert torch.equal(read.tensors[NAME_A], adapter(0.5).tensors[NAME_A])
    assert read.is_on_disk


def test_the_oldest_version_on_disk_makes_room_and_comes_back_from_disk(tmp_path: Path) -> None:
    """A bounded memory; nothing is lost by leaving it."""
    kept = registry(capacity=2)
    paths = [write(tmp_path / str(i), adapter(float(i))) for i in (1, 2, 3)]
    for i, path in enumerate(paths, start=1):
        kept.get(i, path)
    assert [i in kept for i in (1, 2, 3)] == [False, True, True]
    assert kept.get(1, paths[0]).tensors[NAME_A].eq(1.0).all()


def test_a_version_that_is_not_on_disk_yet_never_makes_room() -> None:
    """It exists nowhere else."""
    kept = registry(capacity=1)
    for i in (1, 2, 3):
        kept.put(i, adapter())
    assert all(i in kept for i in (1, 2, 3))
    kept.mark_on_disk(1)
    assert 1 not in kept


def test_a_missing_version_becomes_the_zero_adapter_and_is_reported() -> None:
    """An exception in vLLM's loader would end the engine for everybody."""
    kept = registry()
    assert kept.get_or_zero(7, "/nowhere") is kept.zero
    assert 7 in kept.failed


@pytest.mark.parametrize("damage", ["truncated", "not json", "nan", "foreign", "high rank", "empty"])
def test_a_damaged_version_is_refused_and_others_are_not_touched(tmp_path: Path, damage: str) -> None:
    """Whatever is wrong with it."""
    good = write(tmp_path / "good", adapter())
    bad = {
        "nan": adapter(float("nan")),
        "foreign": adapter(inputs=6),
        "high rank": adapter(rank=8),
        "empty": AdapterTensors({"r": 2}, {}),
    }.get(damage, adapter())
    path = Path(write(tmp_path / "bad", bad))
    if damage == "truncated":
        (path / TENSORS_FILE).write_bytes((path / TENSORS_FILE).read_bytes()[:-8])
    if damage == "not json":
        (path / CONFIG_FILE).write_text("{")
    kept = registry()
    with pytest.raises((OSError, ValueError)):
        kept.get(2, str(path))
    assert kept.get(1, good).tensors[NAME_A].eq(1.0).all()


def test_the_zero_adapter_is_never_read_from_disk() -> None:
    """Its path is not a path."""
    kept = registry()
    assert kept.get(ZERO_LORA_INT_ID, "/nowhere") is kept.zero


def test_a_dropped_version_is_forgotten_with_its_failure() -> None:
    """So that it may be tried again."""
    kept = registry()
    kept.put(1, adapter())
    kept.get_or_zero(2, "/nowhere")
    kept.drop(1)
    kept.drop(2)
    assert 1 not in kept
    assert not kept.failed


def test_copies_can_be_changed_in_place() -> None:
    """vLLM multiplies B by the scaling in place."""
    one = adapter(1.0)
    one.cloned()[NAME_B].mul_(16)
    assert one.tensors[NAME_B].eq(1.0).all()


def test_a_lower_rank_than_the_slots_fits() -> None:
    """vLLM pads."""
    require_fitting(adapter(rank=4), adapter(0.0, rank=1), max_rank=4)
    assert replace(adapter(), is_on_disk=True).is_finite


def test_a_whole_adapter_has_the_tensors_of_its_modules_and_no_others() -> None:
    """One without a half, one for modules that are not trained here, and one that says less than it holds."""
    zero = adapter(0.0, rank=1)
    whole = replace(adapter(), config={"target_modules": ["q_proj"]})
    require_whole(whole, zero)
    half = replace(whole, tensors={NAME_A: whole.tensors[NAME_A]})
    with pytest.raises(ValueError, match="not those of its modules"):
        require_whole(half, zero)
    with pytest.raises(ValueError, match="lm_head are not trained"):
        require_whole(replace(whole, config={"target_modules": ["q_proj", "lm_head"]}), zero)
    with pytest.raises(ValueError, match="not those of its modules"):
        require_whole(replace(whole, config={"target_modules": []}), zero)
