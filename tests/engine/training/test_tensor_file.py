"""engine.training.tensor_file: the same tensors as the library reads, and the same refusals."""

from pathlib import Path

import pytest
import torch
from safetensors.torch import save
from torch import Tensor

from engine.training.tensor_file import read_tensors

MATRICES = {"b": torch.arange(6.0).view(2, 3), "a": torch.arange(4.0), "empty": torch.zeros(0, 3)}


def write(path: Path, tensors: dict[str, Tensor]) -> Path:
    """Write a file and return its path."""
    path.write_bytes(save(tensors, metadata={"format": "pt"}))
    return path


@pytest.mark.parametrize(
    "tensors",
    [
        MATRICES,
        {name: tensor.bfloat16() for name, tensor in MATRICES.items()},
        {"a": torch.ones(3), "b": torch.ones(2, 2, dtype=torch.bfloat16)},
        {},
    ],
    ids=["float32", "bfloat16", "two types", "none"],
)
def test_what_was_written_is_read(tmp_path: Path, tensors: dict[str, Tensor]) -> None:
    """Names, shapes, types and values, of the first file of a kind and of the next."""
    for number in range(2):
        written = {name: tensor + number for name, tensor in tensors.items()}
        read = read_tensors(write(tmp_path / str(number), written))
        assert read.keys() == written.keys()
        for name, tensor in written.items():
            assert read[name].dtype == tensor.dtype
            assert torch.equal(read[name], tensor)


def test_tensors_of_one_type_share_a_block_and_may_be_written_to(tmp_path: Path) -> None:
    """The file itself stays as it is."""
    path = write(tmp_path / "1", MATRICES)
    read = read_tensors(path)
    assert read["a"].untyped_storage().data_ptr() == read["b"].untyped_storage().data_ptr()
    read["a"].zero_()
    assert torch.equal(read_tensors(path)["a"], MATRICES["a"])


@pytest.mark.parametrize("end", [0, 4, 12, 60, -4])
def test_a_broken_file_is_refused_though_one_of_its_kind_was_read_before(tmp_path: Path, end: int) -> None:
    """Cut short anywhere, longer than its header says, or with another header."""
    whole = write(tmp_path / "whole", MATRICES).read_bytes()
    read_tensors(tmp_path / "whole")
    broken = tmp_path / "broken"
    for content in (whole[:end], whole + b"more", whole[:8] + b"[" + whole[9:], b"\xff" * 8 + whole[8:]):
        broken.write_bytes(content)
        with pytest.raises(ValueError, match="is not a safetensors file"):
            read_tensors(broken)


def test_a_missing_file_is_an_error_of_the_system(tmp_path: Path) -> None:
    """As for any file."""
    with pytest.raises(OSError, match="none"):
        read_tensors(tmp_path / "none")
