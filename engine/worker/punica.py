"""vLLM's LoRA arithmetic on a CPU, with the rows of a batch grouped by adapter.

vLLM's own version copies an adapter's matrices once per token, which halves decoding, and gives rows without an
adapter (index -1) the last slot's adapter whenever they share a batch with others (vLLM pull request 48421). Here an
adapter with many rows has a pair of products of its own, and adapters with few rows each, as in decoding, share one
batched pair. Invariants: rows of the base model and of the zero adapter are left exactly as they are; a row gets
nothing but its own adapter's product.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias
from weakref import WeakSet

import torch
from torch import Tensor
from vllm.lora.punica_wrapper.punica_cpu import PunicaWrapperCPU

from engine.adapter_ref import ZERO_LORA_INT_ID
from engine.worker.slot_matrices import SlotMatrices

MIN_ROWS = 4  # of one adapter in a batch from which it gets products of its own
MIN_SHARING = 4  # adapters with fewer rows each, from which they share a batched pair of products

Rows: TypeAlias = slice | Tensor


@dataclass(frozen=True)
class SharedRows:
    """The rows of several adapters with few rows each. M: the most rows that one of them has.

    Every slot has M places, which hold its rows, or any row where it has fewer.
    """

    rows: Rows  # R of them
    filling_SM: Tensor  # the row in each place of all slots
    places_R: Tensor  # the place of each row

    @classmethod
    def of(cls, rows_by_slot: dict[int, list[int]], num_slots: int) -> "SharedRows":
        """Share the rows out to places."""
        most = max(map(len, rows_by_slot.values()))
        pairs = sorted(
            (row, slot * most + place) for slot, rows in rows_by_slot.items() for place, row in enumerate(rows)
        )
        rows, places = [row for row, _ in pairs], torch.tensor([place for _, place in pairs])
        filling = torch.full((num_slots * most,), rows[0])
        filling[places] = torch.tensor(rows)
        return cls(_as_slice(rows), filling, places)


@dataclass
class RowGroups:
    """The rows of a batch by slot."""

    groups: list[tuple[int, Rows]] = field(default_factory=list)  # slot, rows
    shared: SharedRows | None = None

    @classmethod
    def of(cls, token_lora_ids: Sequence[int], slot_of: dict[int, int], num_slots: int) -> "RowGroups":
        """Group the batch's tokens; the ids of no adapter (0) and of the zero adapter are in no group."""
        rows_by_slot: dict[int, list[int]] = {}
        for row, lora_id in enumerate(token_lora_ids):
            if lora_id not in (0, ZERO_LORA_INT_ID):
                rows_by_slot.setdefault(slot_of[lora_id], []).append(row)
        few = {slot: rows for slot, rows in rows_by_slot.items() if len(rows) < MIN_ROWS}
        if len(few) < MIN_SHARING:
            few = {}
        groups = [(slot, _as_slice(rows)) for slot, rows in rows_by_slot.items() if slot not in few]
        return cls(groups, SharedRows.of(few, num_slots) if few else None)


def _as_slice(rows: list[int]) -> Rows:
    if rows[-1] - rows[0] == len(rows) - 1:
        return slice(rows[0], rows[-1] + 1)
    return torch.tensor(rows)


class GroupedPunicaWrapper(PunicaWrapperCPU):
    """PunicaWrapperCPU with grouped rows for linear layers, the only layers heed's adapters sit on."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._rows = RowGroups()
        self._layers: list[tuple[Any, SlotMatrices]] = []
        self._matrices: dict[int, SlotMatrices] = {}  # by their addresses
        _wrappers.add(self)

    def adopt(self, layer: Any) -> None:
        """Keep the slots of one of vLLM's linear layers, which has none of its own from here on. In place."""
        matrices = SlotMatrices(layer.lora_a_stacked, layer.lora_b_stacked)
        self._layers.append((layer, matrices))
        self._hand_out(layer, matrices)

    def make_room(self, rank: int) -> None:
        """Have room for adapters of this rank in the slots of every layer. In place."""
        for layer, matrices in self._layers:
            before = matrices.address
            if matrices.make_room(rank):
                del self._matrices[before]
                self._hand_out(layer, matrices)

    def _hand_out(self, layer: Any, matrices: SlotMatrices) -> None:
        layer.lora_a_stacked, layer.lora_b_stacked = matrices.a_stacks, matrices.b_stacks
        self._matrices[matrices.address] = matrices

    def update_metadata(
        self, mapping: Any, lora_index_to_id: list[int | None], max_loras: int, vocab_size: int, **kwargs: Any
    ) -> None:
        """Take over which token uses which adapter, before every forward pass."""
        super().update_metadata(mapping, lora_index_to_id, max_loras, vocab_size, **kwargs)
        slot_of = {lora_id: slot for slot, lora_id in enumerate(lora_index_to_id) if lora_id is not None}
        self._rows = RowGroups.of(mapping.index_mapping, slot_of, len(lora_index_to_id))

    def add_lora_linear(
        self,
        y: Tensor,
        x: Tensor,
        lora_a_stacked: tuple[Tensor, ...],
        lora_b_stacked: tuple[Tensor, ...],
        scale: float,
        output_slices: tuple[int, ...],
        **_kwargs: Any,
    ) -> None:
        """Add y[rows, slice i] += scale (x[rows] A_i^T) B_i^T for the rows of every adapter. In place: y.

        Axes: y [T, N], x [T, K], A_i [slots, 1, r, K], B_i [slots, 1, N_i, r].
        """
        if not self._rows.groups and self._rows.shared is None:
            return
        matrices = self._matrices[lora_a_stacked[0].data_ptr()]
        for slot, rows in self._rows.groups:
            _add_group(y, x, rows, matrices, slot, scale)
        if self._rows.shared is not None:
            _add_shared(y, x, self._rows.shared, matrices, scale)


def _add_group(y: Tensor, x: Tensor, rows: Rows, matrices: SlotMatrices, slot: int, scale: float) -> None:
    """Add the products of one slot."""
    shrunk = (x[rows] @ matrices.a_SKR[slot]).split(matrices.rank, 1)
    found = [part @ b_SrN[slot] for part, b_SrN in zip(shrunk, matrices.b_SrN, strict=True)]
    _add(y, rows, _beside_each_other(found), scale)


def _add_shared(y: Tensor, x: Tensor, shared: SharedRows, matrices: SlotMatrices, scale: float) -> None:
    """Compute the product of each slot with its own places, then take the rows out of these."""
    x_SMK = x.index_select(0, shared.filling_SM).view(len(matrices.a_SKR), -1, x.shape[1])
    shrunk = torch.bmm(x_SMK, matrices.a_SKR).split(matrices.rank, 2)
    found = [torch.bmm(part, b_SrN) for part, b_SrN in zip(shrunk, matrices.b_SrN, strict=True)]
    _add(y, shared.rows, _beside_each_other(found).flatten(0, 1).index_select(0, shared.places_R), scale)


def _beside_each_other(parts: Sequence[Tensor]) -> Tensor:
    return parts[0] if len(parts) == 1 else torch.cat(parts, -1)


def _add(out: Tensor, rows: Rows, change: Tensor, scale: float) -> None:
    if isinstance(rows, slice):
        out[rows].add_(change, alpha=scale)
    else:
        out.index_add_(0, rows, change, alpha=scale)


_wrappers: "WeakSet[GroupedPunicaWrapper]" = WeakSet()  # of this process, for `make_room`; none on a GPU


def make_room(rank: int) -> None:
    """Have room in every slot for adapters of this rank, before vLLM writes one there. In place."""
    for wrapper in _wrappers:
        wrapper.make_room(rank)


def install() -> None:
    """Make vLLM's CPU platform use this wrapper. In place. Once per process, before the model is loaded."""
    from vllm.lora.layers.base import BaseLayerWithLoRA
    from vllm.lora.layers.base_linear import BaseLinearLayerWithLoRA
    from vllm.platforms.cpu import CpuPlatform

    def set_mapping(layer: Any, wrapper: GroupedPunicaWrapper) -> None:
        BaseLayerWithLoRA.set_mapping(layer, wrapper)
        wrapper.adopt(layer)

    CpuPlatform.get_punica_wrapper = classmethod(lambda _cls: "engine.worker.punica.GroupedPunicaWrapper")
    BaseLinearLayerWithLoRA.set_mapping = set_mapping
