"""vLLM's LoRA arithmetic on a CPU, one pair of matrix products per adapter.

vLLM's own version copies an adapter's matrices once per token, which halves decoding, and gives rows without an
adapter (index -1) the last slot's adapter whenever they share a batch with others (vLLM pull request 48421). This one
groups rows by slot. Invariants: rows of the base model and of the zero adapter are left exactly as they are; a row gets
nothing but its own adapter's product.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import torch
from torch import Tensor
from vllm.lora.punica_wrapper.punica_cpu import PunicaWrapperCPU

from engine.adapter_ref import ZERO_LORA_INT_ID

MIN_GROUP = 16  # tokens of one adapter in a batch from which it gets matrix products of its own

Rows: TypeAlias = slice | Tensor


@dataclass
class RowGroups:
    """The rows of a batch by slot. `mixed`: rows of many adapters with few tokens each, computed together."""

    groups: list[tuple[int, Rows]] = field(default_factory=list)  # slot, rows
    mixed: Rows | None = None
    others_TS1: Tensor | None = None  # for the mixed rows: True at every slot that is not the row's own

    @classmethod
    def of(cls, token_lora_ids: Sequence[int], slot_of: dict[int, int], num_slots: int) -> "RowGroups":
        """Group the batch's tokens; the ids of no adapter (0) and of the zero adapter are in no group."""
        rows_by_slot: dict[int, list[int]] = {}
        for row, lora_id in enumerate(token_lora_ids):
            if lora_id not in (0, ZERO_LORA_INT_ID):
                rows_by_slot.setdefault(slot_of[lora_id], []).append(row)
        few = {slot: rows for slot, rows in rows_by_slot.items() if len(rows) < MIN_GROUP}
        if len(few) < 2:
            few = {}
        groups = [(slot, _as_slice(rows)) for slot, rows in rows_by_slot.items() if slot not in few]
        return cls(groups, *_mix(few, num_slots)) if few else cls(groups)


def _mix(rows_by_slot: dict[int, list[int]], num_slots: int) -> tuple[Rows, Tensor]:
    pairs = sorted((row, slot) for slot, rows in rows_by_slot.items() for row in rows)
    others = torch.ones(len(pairs), num_slots, 1, dtype=torch.bool)
    others[torch.arange(len(pairs)), torch.tensor([slot for _, slot in pairs])] = False
    return _as_slice([row for row, _ in pairs]), others


def _as_slice(rows: list[int]) -> Rows:
    if rows[-1] - rows[0] == len(rows) - 1:
        return slice(rows[0], rows[-1] + 1)
    return torch.tensor(rows)


class GroupedPunicaWrapper(PunicaWrapperCPU):
    """PunicaWrapperCPU with grouped rows for linear layers, the only layers heed's adapters sit on."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._rows = RowGroups()
        self._slots: list[int | None] = []  # adapter id by slot
        self._b_of_all_slots: dict[int, Tensor] = {}  # [slots r, N] by address; valid while no slot changes hands

    def update_metadata(
        self, mapping: Any, lora_index_to_id: list[int | None], max_loras: int, vocab_size: int, **kwargs: Any
    ) -> None:
        """Take over which token uses which adapter, before every forward pass."""
        super().update_metadata(mapping, lora_index_to_id, max_loras, vocab_size, **kwargs)
        slot_of = {lora_id: slot for slot, lora_id in enumerate(lora_index_to_id) if lora_id is not None}
        self._rows = RowGroups.of(mapping.index_mapping, slot_of, len(lora_index_to_id))
        if self._slots != lora_index_to_id:
            self._slots = list(lora_index_to_id)
            self._b_of_all_slots.clear()

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
        first = 0
        for a, b, size in zip(lora_a_stacked, lora_b_stacked, output_slices, strict=True):
            out = y[:, first : first + size]
            for slot, rows in self._rows.groups:
                _add_product(out, rows, x[rows] @ a[slot, 0].t(), b[slot, 0].t(), scale)
            if self._rows.mixed is not None:
                self._add_mixed(out, x, self._rows.mixed, a, b, scale)
            first += size

    def _add_mixed(self, out: Tensor, x: Tensor, rows: Rows, a: Tensor, b: Tensor, scale: float) -> None:
        """Compute all slots in one product with the other slots of each row cleared: less work than one per adapter."""
        num_slots, _, rank, _ = a.shape
        shrunk = (x[rows] @ a.view(num_slots * rank, -1).t()).view(-1, num_slots, rank)
        shrunk.masked_fill_(self._rows.others_TS1, 0.0)
        _add_product(out, rows, shrunk.flatten(1), self._all_b(b), scale)

    def _all_b(self, b: Tensor) -> Tensor:
        key = b.data_ptr()
        if key not in self._b_of_all_slots:
            self._b_of_all_slots[key] = b[:, 0].transpose(1, 2).flatten(0, 1)
        return self._b_of_all_slots[key]


def _add_product(out: Tensor, rows: Rows, left: Tensor, right: Tensor, scale: float) -> None:
    if isinstance(rows, slice):
        out[rows].addmm_(left, right, alpha=scale)
    else:
        out.index_add_(0, rows, left @ right, alpha=scale)


def install() -> None:
    """Make vLLM's CPU platform use this wrapper. In place. Once per process, before the model is loaded."""
    from vllm.platforms.cpu import CpuPlatform

    CpuPlatform.get_punica_wrapper = classmethod(lambda _cls: "engine.worker.punica.GroupedPunicaWrapper")
