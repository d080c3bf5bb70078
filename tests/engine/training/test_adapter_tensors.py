"""engine.training.adapter_tensors: reading and writing one adapter, and the checks on it."""

import math
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from engine.training.adapter_tensors import AdapterTensors, read_directory, require_fitting, require_whole

NAME_A, NAME_B = "m.q_proj.lora_A.weight", "m.q_proj.lora_B.weight"


def adapter(value: float = 1.0, rank: int = 2, inputs: int = 5) -> AdapterTensors:
    """Return an adapter with one module."""
    return AdapterTensors(
        {"r": rank}, {NAME_A: torch.full((rank, inputs), value), NAME_B: torch.full((3, rank), value)}
    )


def write(path: Path, what: AdapterTensors) -> str:
    """Write a PEFT directory and return its path."""
    path.mkdir(parents=True)
    for name, data in what.files().items():
        (path / name).write_bytes(data)
    return str(path)


def test_what_was_written_is_read_back(tmp_path: Path) -> None:
    """A PEFT directory gives back the values and the configuration it was written from."""
    path = write(tmp_path / "1", adapter(0.5))
    read = read_directory(Path(path))
    assert read.config == {"r": 2}
    assert torch.equal(read.tensors[NAME_A], adapter(0.5).tensors[NAME_A])
    assert read.is_on_disk


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_what_is_served_can_be_scaled_in_place(dtype: torch.dtype) -> None:
    """vLLM multiplies B by the scaling in place, and the adapter in memory stays as it is."""
    one = adapter(1.0)
    served = one.served(dtype)
    served[NAME_B].mul_(16)
    assert {tensor.dtype for tensor in served.values()} == {dtype}
    assert one.tensors[NAME_B].eq(1.0).all()


def test_an_a_of_the_served_models_type_is_in_memory_once() -> None:
    """vLLM reads it only."""
    one = adapter(1.0)
    assert one.served(torch.float32)[NAME_A].data_ptr() == one.tensors[NAME_A].data_ptr()


def test_a_lower_rank_than_the_slots_fits() -> None:
    """A slot is padded, so an adapter of any rank up to the highest is taken."""
    require_fitting(adapter(rank=4), adapter(0.0, rank=1), max_rank=4)
    assert replace(adapter(), is_on_disk=True).is_finite


@pytest.mark.parametrize("values", [[math.nan], [math.inf], [math.inf, -math.inf], [3e38, 3e38]])
def test_what_is_no_number_is_found(values: list[float]) -> None:
    """One value is enough, wherever it stands; numbers that cannot be added up are none to learn with."""
    broken = adapter(1.0)
    broken.tensors[NAME_B].flatten()[: len(values)] = torch.tensor(values)
    assert not broken.is_finite


def test_a_whole_adapter_has_the_tensors_of_its_modules_and_no_others() -> None:
    """Missing tensors, modules that are not trained here and tensors that are not configured are refused."""
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
