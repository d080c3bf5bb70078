"""engine.worker.lora_registry: adapters in the worker's memory, and those that cannot be loaded."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from engine.adapter_ref import CONFIG_FILE, TENSORS_FILE, ZERO_LORA_INT_ID
from engine.training.adapter_tensors import AdapterTensors
from engine.worker.lora_registry import LoraRegistry, install

NAME_A, NAME_B = "m.q_proj.lora_A.weight", "m.q_proj.lora_B.weight"


def adapter(value: float = 1.0, rank: int = 2, inputs: int = 5) -> AdapterTensors:
    """Return an adapter with one module."""
    return AdapterTensors(
        {"r": rank}, {NAME_A: torch.full((rank, inputs), value), NAME_B: torch.full((3, rank), value)}
    )


def registry(capacity: int = 9) -> LoraRegistry:
    """Return an empty registry with room for so many adapters of a model with that one module."""
    return LoraRegistry(capacity * adapter().num_bytes, adapter(0.0, rank=1), torch.float32, max_rank=4)


def write(path: Path, what: AdapterTensors) -> str:
    """Write a PEFT directory and return its path."""
    path.mkdir(parents=True)
    for name, data in what.files().items():
        (path / name).write_bytes(data)
    return str(path)


def test_the_oldest_version_on_disk_makes_room_and_comes_back_from_disk(tmp_path: Path) -> None:
    """Memory is bounded, and a version that left it is read from disk again."""
    kept = registry(capacity=2)
    paths = [write(tmp_path / str(i), adapter(float(i))) for i in (1, 2, 3)]
    for i, path in enumerate(paths, start=1):
        kept.get(i, path)
    assert [i in kept for i in (1, 2, 3)] == [False, True, True]
    assert kept.get(1, paths[0]).tensors[NAME_A].eq(1.0).all()


def test_an_adapter_larger_than_all_the_room_is_served(tmp_path: Path) -> None:
    """It drives all others out, and stays as the one that was used last."""
    kept = registry(capacity=1)
    kept.get(1, write(tmp_path / "1", adapter(1.0)))
    assert kept.get(4, write(tmp_path / "4", adapter(rank=4))).config["r"] == 4
    assert [i in kept for i in (1, 4)] == [False, True]


def test_adapters_are_kept_in_the_type_that_is_served(tmp_path: Path) -> None:
    """Whatever the file's."""
    served = LoraRegistry(1 << 20, adapter(0.0), torch.bfloat16, max_rank=4)
    read = served.get(1, write(tmp_path / "1", adapter(1.0)))
    assert {tensor.dtype for tensor in read.tensors.values()} == {torch.bfloat16}


def test_a_version_that_is_not_on_disk_yet_never_makes_room() -> None:
    """A version that exists nowhere else stays in memory until it is marked as written."""
    kept = registry(capacity=1)
    for i in (1, 2, 3):
        kept.put(i, adapter())
    assert all(i in kept for i in (1, 2, 3))
    kept.mark_on_disk(1)
    assert 1 not in kept


def test_a_missing_version_becomes_the_zero_adapter_and_is_reported() -> None:
    """No exception leaves the loader, because one would end the engine for all."""
    kept = registry()
    assert kept.get_or_zero(7, "/nowhere") is kept.zero
    assert 7 in kept.failed


@pytest.mark.parametrize("damage", ["truncated", "not json", "nan", "foreign", "high rank", "empty"])
def test_a_damaged_version_is_refused_and_others_are_not_touched(tmp_path: Path, damage: str) -> None:
    """Every kind of damage raises OSError or ValueError, and an intact version is still read."""
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
    """It is at hand even if its path does not exist."""
    kept = registry()
    assert kept.get(ZERO_LORA_INT_ID, "/nowhere") is kept.zero


def test_a_dropped_version_is_forgotten_with_its_failure() -> None:
    """Neither the version nor its failure is left, so that it can be tried again."""
    kept = registry()
    kept.put(1, adapter())
    kept.get_or_zero(2, "/nowhere")
    kept.drop(1)
    kept.drop(2)
    assert 1 not in kept
    assert not kept.failed


def test_adapters_that_are_loaded_come_first() -> None:
    """A new one that came before them would take the slot of one in the same batch."""
    batches: list[list[int]] = []

    def apply(requests: Any) -> None:
        batches.append([request.lora_int_id for request in requests])

    adapters = SimpleNamespace(model=torch.nn.Module(), packed_modules={}, activate_adapter=None)
    manager = SimpleNamespace(_adapter_manager=adapters, _apply_adapters=apply, list_adapters=lambda: {4, 9})
    install(manager, registry())
    manager._apply_adapters([SimpleNamespace(lora_int_id=number) for number in (1, 9, 2, 4)])
    assert batches == [[9, 4, 1, 2]]
