"""engine.worker.slot_matrices: vLLM writes adapters into views of what products read."""

from typing import Any

import torch

from engine.worker.slot_matrices import MIN_RANK, SlotMatrices

SLOTS, ROOM, INPUTS, OUTPUTS = 3, 4 * MIN_RANK, 5, (6, 4)
Values = list[tuple[Any, Any]]  # A [r, K] and B [N, r] of each part


def slots() -> SlotMatrices:
    """Return what takes the place of vLLM's stacks for a layer of two parts."""
    a = [torch.zeros(SLOTS, 1, ROOM, INPUTS) for _ in OUTPUTS]
    return SlotMatrices(a, [torch.zeros(SLOTS, 1, outputs, ROOM) for outputs in OUTPUTS])


def written(matrices: SlotMatrices, slot: int, rank: int) -> Values:
    """Write a random adapter as vLLM does, and return its values."""
    values = [(torch.randn(rank, INPUTS), torch.randn(outputs, rank)) for outputs in OUTPUTS]
    for (a, b), a_stack, b_stack in zip(values, matrices.a_stacks, matrices.b_stacks, strict=True):
        a_stack[slot], b_stack[slot] = 0, 0
        a_stack[slot, 0, :rank, :INPUTS].copy_(a)
        b_stack[slot, 0, : len(b), :rank].copy_(b)
    return values


def holds(matrices: SlotMatrices, slot: int, values: Values) -> bool:
    """Return True if the products of a slot are those of an adapter."""
    shrunk = matrices.a_SKR[slot].split(matrices.rank, 1)
    parts_rN = matrices.b_SrN[slot].split(matrices.widths, 1)
    products = [part @ part_rN for part, part_rN in zip(shrunk, parts_rN, strict=True)]
    return all(
        torch.allclose(product, (b @ a).t(), atol=1e-5) for product, (a, b) in zip(products, values, strict=True)
    )


def test_an_adapter_is_where_vllm_writes_it() -> None:
    """Each slot's products are those of the adapter that was written there last."""
    matrices = slots()
    first, other = written(matrices, 0, MIN_RANK), written(matrices, 2, 3)
    assert holds(matrices, 0, first)
    assert holds(matrices, 2, other)
    assert holds(matrices, 0, written(matrices, 0, 2))
    assert holds(matrices, 2, other)


def test_every_part_has_whole_pieces() -> None:
    """The greatest that fit each of them, in their order."""
    matrices = slots()
    assert (matrices.piece_width, matrices.parts_of_pieces.tolist()) == (2, [0, 0, 0, 1, 1])


def test_room_for_great_ranks_is_made_when_one_comes() -> None:
    """Before, a product has no more rows than adapters have."""
    matrices = slots()
    assert matrices.a_SKR.shape == (SLOTS, INPUTS, MIN_RANK * len(OUTPUTS))
    assert not matrices.make_room(MIN_RANK)
    assert matrices.make_room(ROOM - 1)
    assert matrices.a_SKR.shape == (SLOTS, INPUTS, ROOM * len(OUTPUTS))
    assert holds(matrices, 1, written(matrices, 1, ROOM - 1))


def test_adapters_stay_where_they_are_as_room_is_made() -> None:
    """With their values, in stacks at another address."""
    matrices = slots()
    values, address = written(matrices, 1, 5), matrices.address
    matrices.make_room(2 * MIN_RANK)
    assert matrices.address != address
    assert matrices.a_stacks[0].data_ptr() == matrices.address
    assert holds(matrices, 1, values)
    assert not matrices.a_SKR[0].any()


def test_there_is_no_more_room_than_vllm_allows() -> None:
    """An adapter of a greater rank is refused by vLLM."""
    matrices = slots()
    matrices.make_room(8 * ROOM)
    assert matrices.rank == ROOM
    small = SlotMatrices([torch.zeros(SLOTS, 1, 4, INPUTS)], [torch.zeros(SLOTS, 1, 6, 4)])
    assert small.rank == 4
    assert not small.make_room(MIN_RANK)
