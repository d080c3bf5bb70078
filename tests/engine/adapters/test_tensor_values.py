"""engine.adapters.tensor_values: what PyTorch has written, read without it."""

import pytest
import torch
from safetensors import SafetensorError
from safetensors.torch import save

from engine.adapters.tensor_values import read_values

TENSORS = {"a": torch.tensor([[0.1, -3e38, 1e-30], [float("inf"), float("nan"), -0.0]]), "empty": torch.zeros(0, 2)}


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_values_are_those_that_were_written(dtype: torch.dtype) -> None:
    """In shape and to the bit, also what is no number."""
    written = {name: tensor.to(dtype) for name, tensor in TENSORS.items()}
    read = read_values(save(written))
    assert read.keys() == written.keys()
    for name, tensor in written.items():
        assert torch.equal(torch.from_numpy(read[name].copy()).view(torch.int32), tensor.float().view(torch.int32))


def test_other_types_and_broken_files_are_refused() -> None:
    """By name, and as the library says."""
    with pytest.raises(ValueError, match=r"^a is F16, and heed keeps F32 and BF16$"):
        read_values(save({"a": torch.ones(2, dtype=torch.float16)}))
    with pytest.raises(SafetensorError):
        read_values(b"\x00" * 64)
