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


def test_an_adapter_is_read_in_the_type_that_is_asked_for(tmp_path: Path) -> None:
    """Whatever type the file has; one that has it already is not copied."""
    path = Path(write(tmp_path / "1", adapter(1 + 2**-9).rounded(torch.bfloat16)))
    read = read_directory(path)
    assert read.tensors[NAME_B].dtype == torch.float32
    assert read.tensors[NAME_A].eq(1.0).all()
    assert read.rounded(torch.float32) is read
    assert read_directory(path, torch.bfloat16).tensors[NAME_B].dtype == torch.bfloat16


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
