"""vLLM's LoRA arithmetic on a CPU, with the rows of a batch grouped by adapter.

vLLM's own version copies an adapter's matrices once per token, which halves decoding, and gives rows without an
adapter (index -1) the last slot's adapter whenever they share a batch with others (vLLM pull request 48421). Here an
adapter with many rows has a pair of products of its own; every other row, as in decoding, reads the matrices of its own
slot as weighted sums of their rows (PyTorch's embedding bags). Invariants: rows of the base model and of the zero
adapter are left exactly as they are; a row gets nothing but its own adapter's product, and a row by itself gets the
same beside any others.
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

MIN_ROWS = 32  # of one adapter in a batch from which it gets products of its own: docs/LOG.md, 2026-11-30

Rows: TypeAlias = slice | Tensor
_SUM = 0  # the mode of an embedding bag


@dataclass(frozen=True)
class Bags:
    """Rows of a table to add up. B bags of I rows each."""

    indices_BI: Tensor  # flat
    offsets_B: Tensor

    @classmethod
    def of(cls, indices_BI: Tensor) -> "Bags":
        """Keep them as `sums` reads them."""
        num_rows, size = indices_BI.numel(), indices_BI.shape[-1]
        return cls(indices_BI.flatten().int(), torch.arange(0, num_rows, size, dtype=torch.int32))

    def sums(self, table: Tensor, weights: Tensor) -> Tensor:
        """Return the weighted sum of the rows of each bag, axes [B, the table's columns]; `weights` has B I values."""
        return torch.embedding_bag(table, self.indices_BI, self.offsets_B, False, _SUM, False, weights.reshape(-1))[0]


class LoneRows:
    """The rows of adapters with few rows each. R: how many."""

    def __init__(self, slot_of_rows: dict[int, int]) -> None:
        rows = sorted(slot_of_rows)
        self.rows, self.num_rows = _as_slice(rows), len(rows)
        self.slots_R = torch.tensor([slot_of_rows[row] for row in rows])
        self._bags: dict[tuple[int, int], Bags] = {}

    def bags(self, height: int, num_pieces: int = 1) -> Bags:
        """Return for each row and piece this piece of all rows of its slot's matrix, of which a slot has `height`."""
        if (height, num_pieces) not in self._bags:
            own_RH = self.slots_R[:, None] * height + torch.arange(height)
            self._bags[height, num_pieces] = Bags.of(own_RH[:, None] * num_pieces + torch.arange(num_pieces)[:, None])
        return self._bags[height, num_pieces]


@dataclass
class RowGroups:
    """The rows of a batch by slot."""

    groups: list[tuple[int, Rows]] = field(default_factory=list)  # slot, rows
    lone: LoneRows | None = None

    @classmethod
    def of(cls, token_lora_ids: Sequence[int], slot_of: dict[int, int]) -> "RowGroups":
        """Group the batch's tokens; the ids of no adapter (0) and of the zero adapter are in no group."""
        rows_by_slot: dict[int, list[int]] = {}
        for row, lora_id in enumerate(token_lora_ids):
            if lora_id not in (0, ZERO_LORA_INT_ID):
                rows_by_slot.setdefault(slot_of[lora_id], []).append(row)
        groups = [(slot, _as_slice(rows)) for slot, rows in rows_by_slot.items() if len(rows) >= MIN_ROWS]
        lone = {row: slot for slot, rows in rows_by_slot.items() if len(rows) < MIN_ROWS for row in rows}
        return cls(groups, LoneRows(lone) if lone else None)


def _as_slice(rows: list[int]) -> Rows:
    if rows[-1] - rows[0] == len(rows) - 1:
        return slice(rows[0], rows[-1] + 1)
    return torch.tensor(rows)


class GroupedPunicaWrapper(PunicaWrapperCPU):
    """PunicaWrapperCPU with grouped rows for linear layers, the only layers heed's adapters sit on."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._rows = RowGroups()
        self._kept: dict[int, tuple[Any, SlotMatrices]] = {}  # each layer with its own, by the address of these
        _wrappers.add(self)

    def adopt(self, layer: Any) -> None:
        """Keep the slots of one of vLLM's linear layers, which has none of its own from here on. In place."""
        self._hand_out(layer, SlotMatrices(layer.lora_a_stacked, layer.lora_b_stacked))

    def make_room(self, rank: int) -> None:
        """Have room for adapters of this rank in the slots of every layer. In place."""
        for address, (layer, matrices) in list(self._kept.items()):
            if matrices.make_room(rank):
                del self._kept[address]
                self._hand_out(layer, matrices)

    def _hand_out(self, layer: Any, matrices: SlotMatrices) -> None:
        layer.lora_a_stacked, layer.lora_b_stacked = matrices.a_stacks, matrices.b_stacks
        self._kept[matrices.address] = (layer, matrices)

    def update_metadata(
        self, mapping: Any, lora_index_to_id: list[int | None], max_loras: int, vocab_size: int, **kwargs: Any
    ) -> None:
        """Take over which token uses which adapter, before every forward pass."""
        super().update_metadata(mapping, lora_index_to_id, max_loras, vocab_size, **kwargs)
        slot_of = {lora_id: slot for slot, lora_id in enumerate(lora_index_to_id) if lora_id is not None}
        self._rows = RowGroups.of(mapping.index_mapping, slot_of)

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
        lone = self._rows.lone
        if not self._rows.groups and lone is None:
            return
        _, matrices = self._kept[lora_a_stacked[0].data_ptr()]
        for slot, rows in self._rows.groups:
            _add(y, rows, _product(x[rows], matrices, slot), scale)
        if lone is None:
            return
        if lone.num_rows == len(x):  # all of them, as in most steps: a view of each would cost as much as a sum
            y.add_(_own_products(x, lone, matrices), alpha=scale)
        else:
            _add(y, lone.rows, _own_products(x[lone.rows], lone, matrices), scale)


def _product(x: Tensor, matrices: SlotMatrices, slot: int) -> Tensor:
    """Return the product of rows with one slot, axes [rows, N]."""
    shrunk = (x @ matrices.a_SKR[slot]).split(matrices.rank, 1)
    parts_rN = matrices.b_SrN[slot].split(matrices.widths, 1)
    found = [part @ part_rN for part, part_rN in zip(shrunk, parts_rN, strict=True)]
    return found[0] if len(found) == 1 else torch.cat(found, 1)


def _own_products(x: Tensor, lone: LoneRows, matrices: SlotMatrices) -> Tensor:
    """Return the product of each of the rows x [R, K] with its own slot, axes [R, N].

    x A is the sum of A's rows, weighted by x; and B, a row of which has several parts, is read in pieces of one width.
    """
    shrunk = lone.bags(x.shape[1]).sums(matrices.a_rows, x)
    if matrices.num_pieces > len(matrices.widths):
        shrunk = shrunk.view(lone.num_rows, -1, matrices.rank).index_select(1, matrices.parts_of_pieces)
    pieces = lone.bags(matrices.rank, matrices.num_pieces).sums(matrices.b_pieces, shrunk)
    return pieces.view(lone.num_rows, -1)


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
