"""engine.worker.slot_matrices: packed copies of vLLM's stacks, read where a slot changes hands."""

from typing import Any

import torch

from engine.worker.slot_matrices import MIN_RANK, SlotMatrices

SLOTS, ROOM, INPUTS, OUTPUTS = 3, 4 * MIN_RANK, 5, 6
IDS: list[int | None] = [101, None, 102]


def stacks(*ranks: int) -> tuple[Any, Any]:
    """Return vLLM's stacks, with an adapter of each rank in the slots in turn."""
    a, b = torch.zeros(SLOTS, 1, ROOM, INPUTS), torch.zeros(SLOTS, 1, OUTPUTS, ROOM)
    for slot, rank in enumerate(ranks):
        a[slot, 0, :rank], b[slot, 0, :, :rank] = torch.randn(rank, INPUTS), torch.randn(OUTPUTS, rank)
    return a, b


def is_packed(matrices: SlotMatrices, a: Any, b: Any, slot: int) -> bool:
    """Return True if a slot's product is that of vLLM's stacks."""
    product = matrices.a_SKR[slot] @ matrices.b_SrN[0][slot]
    return torch.allclose(product, (b[slot, 0] @ a[slot, 0]).t(), atol=1e-5)


def test_ranks_that_are_all_zero_are_left_out() -> None:
    """Room for a great rank costs nothing where adapters have small ones."""
    a, b = stacks(MIN_RANK, 0, 3)
    matrices = SlotMatrices([a], [b])
    matrices.follow(IDS)
    assert matrices.a_SKR.shape == (SLOTS, INPUTS, MIN_RANK)
    assert is_packed(matrices, a, b, 0)
    assert is_packed(matrices, a, b, 2)


def test_a_greater_rank_makes_room_for_all() -> None:
    """The slots read before are read again where one comes that needs more."""
    a, b = stacks(MIN_RANK)
    matrices = SlotMatrices([a], [b])
    matrices.follow([101, None, None])
    larger, its_b = stacks(MIN_RANK, 0, ROOM - 1)
    a[2], b[2] = larger[2], its_b[2]
    matrices.follow(IDS)
    assert matrices.a_SKR.shape == (SLOTS, INPUTS, ROOM)
    assert is_packed(matrices, a, b, 0)
    assert is_packed(matrices, a, b, 2)


def test_only_a_slot_that_changed_hands_is_read() -> None:
    """A version never changes, so its slot is read once."""
    a, b = stacks(2, 2, 2)
    matrices = SlotMatrices([a], [b])
    matrices.follow([101, 102, 103])
    a.zero_()
    matrices.follow([101, 104, 103])
    assert bool(matrices.a_SKR[0].any())
    assert bool(matrices.a_SKR[2].any())
    assert not matrices.a_SKR[1].any()


def test_a_slot_that_nobody_has_is_not_read() -> None:
    """What an empty slot still holds in vLLM's stacks is nothing to anyone."""
    a, b = stacks(2, 2, 2)
    matrices = SlotMatrices([a], [b])
    matrices.follow(IDS)
    assert not matrices.a_SKR[1].any()
