"""The training forward for Llama's family on a GPU, by as few kernels as may be.

There a step of Hugging Face and PEFT waits for launches: of 357 ms for eight short answers of an 8B model, 14,709
kernels, an H200 computes 77. Here query, key and value are one product, as vLLM keeps their weights, what stands
between the products is one kernel or two (`engine.training.gpu_ops`), and what comes again is launched as one
(`engine.training.graphs`). In a step prompts are read without a gradient, in a row of their own; where nothing is
learned there is one row (`engine.training.packing`). Invariants: base weights are never changed, nor copied where
vLLM's are given; equal to Hugging Face with PEFT to rounding (a test compares values and gradients).
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from engine.training.batching import Batch
from engine.training.gpu_ops import attention, linear_onto, norm, rotary
from engine.training.graphs import Graphs
from engine.training.llama_ops import gated, stacked_linear
from engine.training.lora_slot import LoraSlot
from engine.training.packing import TokenRow, pack, unpadded, whole
from engine.training.recomputing import Recomputing, kept_bytes
from engine.training.stacked_model import Loras, StackedModel
from engine.training.step_memory import StepMemory

ROW_MULTIPLE = 64  # rows are filled up to it: products are computed in tiles of as many, and shapes are few

Sides = tuple[Tensor, Tensor]  # keys and values of a layer, axes [P, K, D] each


class FilledRow(NamedTuple):
    """P tokens and what each of them may see."""

    ids_P: Tensor
    cos: Tensor  # of its position's angles, axes [P, 1, D]
    sin: Tensor  # negative in the first half of D
    mask_PM: Tensor  # True where a token may look, at those that are read and then at its own row


class LayerAdapters(NamedTuple):
    """The adapter of each layer, and a tensor that requires a gradient if they do."""

    loras: list[Loras]
    anchor: Tensor


class GpuModel(StackedModel):
    """Forward passes with or without a LoRA slot; the counterpart of `engine.training.peft_model.PeftTrainingModel`."""

    def __init__(self, base: Any, base_name: str, graphs: Graphs | None = None) -> None:
        """Take the weights out of a Hugging Face model of the family, which computes nothing afterwards.

        `graphs` None: every pass is computed launch by launch.
        """
        super().__init__(base, base_name)
        config = base.config
        memory = StepMemory(config.num_hidden_layers, config.hidden_size, config.intermediate_size)
        self._recomputing = Recomputing(memory, kept_bytes(self.device))
        self._graphs = graphs

    # -- rows --------------------------------------------------------------------------------------------------------

    def hidden(self, slot: LoraSlot | None, batch: Batch) -> Tensor:
        """Return the last hidden states at the response positions, axes [N, H]; gradients go through these alone."""
        if not torch.is_grad_enabled():
            row, places_N = whole(batch)
            return self._passed(slot, self._states, self._row_alone(row))[places_N]
        packed = pack(batch)
        asked = self._row(packed.asked, _filled_behind(packed.may_see_11NM[0, 0]))
        with self._recomputing.step_of(len(asked.ids_P)):
            states = self._passed(slot, self._answers, (*self._row_alone(packed.read), *asked))
        return states[: len(batch.rows_N)]

    def _passed(self, slot: LoraSlot | None, compute: Callable[..., Tensor], inputs: Sequence[Tensor]) -> Tensor:
        """Return what one pass computes of its rows, as a graph if it can be one."""

        def work(*tensors: Tensor) -> Tensor:
            return compute(self._adapters(slot), *tensors)

        if self._graphs is None or self._recomputing.is_on:
            return work(*inputs)
        return self._graphs.run(id(slot), work, inputs, self._embedding if slot is None else slot.flat)

    def _adapters(self, slot: LoraSlot | None) -> LayerAdapters:
        """Return the adapters with the slot's values as they are when this is computed, also as part of a graph."""
        anchor = torch.empty(0, device=self.device, requires_grad=slot is not None)  # a graph would wait for the slot's
        if slot is None:
            return LayerAdapters(self._no_loras, anchor)
        adapted = self._known(slot)
        adapted.take()
        return LayerAdapters(adapted.loras, anchor)

    def _row(self, row: TokenRow, mask_PM: Tensor) -> FilledRow:
        """Return a row filled up to a mask of it."""
        more = len(mask_PM) - len(row.ids_P)
        cos, sin = self._angles(nn.functional.pad(row.positions_P, (0, more)))
        below, above = sin.chunk(2, dim=-1)
        return FilledRow(nn.functional.pad(row.ids_P, (0, more)), cos, torch.cat([-below, above], dim=-1), mask_PM)

    def _row_alone(self, row: TokenRow) -> FilledRow:
        return self._row(row, _filled_mask(row.may_see_11PP[0, 0]))

    # -- passes ------------------------------------------------------------------------------------------------------

    def _states(self, adapters: LayerAdapters, *tensors: Tensor) -> Tensor:
        """Return the last states of a row by itself, axes [P, H]."""
        row = FilledRow(*tensors)
        x = self._embedding[row.ids_P]
        for index in range(self.num_layers):
            x = self._layer(index, x, row, adapters)
        return norm(x, self._final_norm, self._eps)

    def _answers(self, adapters: LayerAdapters, *tensors: Tensor) -> Tensor:
        """Return the last states of a row behind prompts, which are only read, axes [P, H]."""
        read, row = FilledRow(*tensors[: len(FilledRow._fields)]), FilledRow(*tensors[len(FilledRow._fields) :])
        with torch.no_grad():
            sides = self._sides(read, adapters)
        x = self._embedding[row.ids_P]
        for index in range(self.num_layers):
            x = self._recomputing.run(self._layer, index, x, row, adapters, sides[index])
        return norm(x, self._final_norm, self._eps)

    def _sides(self, row: FilledRow, adapters: LayerAdapters) -> list[Sides]:
        """Return the keys and values of prompts in each layer."""
        x, found = self._embedding[row.ids_P], []
        for index in range(self.num_layers):
            q, k, v = self._asked(index, x, row, adapters)
            found.append((k, v))
            if index < self.num_layers - 1:  # of the last layer nothing is looked at but keys and values
                x = self._behind(index, x, attention(q, k, v, row.mask_PM), adapters)
        return found

    def layer_states(self, input_ids_BL: Tensor, layers: Sequence[int]) -> list[Tensor]:
        """Return the base model's states behind some layers, axes [B, L, H] each; those of the last one are normed."""
        row, adapters = self._row_alone(unpadded(input_ids_BL)), self._adapters(None)

        def behind(index: int, x: Tensor) -> Tensor:
            filled = nn.functional.pad(x, (0, 0, 0, len(row.ids_P) - len(x)))
            return self._layer(index, filled, row, adapters)[: len(x)]

        return self._states_behind(input_ids_BL, layers, behind)

    def _layer(
        self, index: int, x: Tensor, row: FilledRow, adapters: LayerAdapters, read: Sides | None = None
    ) -> Tensor:
        q, k, v = self._asked(index, x, row, adapters)
        if read is not None:
            k, v = torch.cat([read[0], k]), torch.cat([read[1], v])
        return self._behind(index, x, attention(q, k, v, row.mask_PM), adapters)

    def _asked(self, index: int, x: Tensor, row: FilledRow, adapters: LayerAdapters) -> tuple[Tensor, Tensor, Tensor]:
        """Return a layer's queries, axes [P, H, D], keys and values, axes [P, K, D]; the first two rotated."""
        layer, heads = self._layers[index], self._heads
        qkv = self._linear("qkv", index, norm(x, layer.input_norm, self._eps), adapters)
        qk, v = qkv.view(len(x), -1, heads.size).split([heads.num_normed, heads.num_kv], dim=1)
        if layer.qk_norm is not None:
            qk = norm(qk, None, self._eps) * layer.qk_norm
        q, k = rotary(qk, row.cos, row.sin).split([heads.num_heads, heads.num_kv], dim=1)
        return q, k, v

    def _behind(self, index: int, x: Tensor, seen: Tensor, adapters: LayerAdapters) -> Tensor:
        """Return the states behind a layer, axes [P, H], of those before it and what they attended to."""
        x = self._onto(x, "out", index, seen, adapters)
        normed = norm(x, self._layers[index].post_norm, self._eps)
        gate, up = (self._linear(name, index, normed, adapters) for name in ("gate", "up"))
        return self._onto(x, "down", index, gated(gate, up), adapters)

    def _linear(self, name: str, index: int, x: Tensor, adapters: LayerAdapters) -> Tensor:
        fused = self._layers[index].fused[name]
        return stacked_linear(x, adapters.anchor, fused.weight, fused.bias, adapters.loras[index][name])

    def _onto(self, residual: Tensor, name: str, index: int, x: Tensor, adapters: LayerAdapters) -> Tensor:
        fused = self._layers[index].fused[name]
        onto = residual if fused.bias is None else residual + fused.bias
        return linear_onto(onto, x, adapters.anchor, fused.weight, adapters.loras[index][name])


def _more(size: int) -> int:
    """Return how many rows a row of some size is filled up with; one without any gets them, too."""
    return -size % ROW_MULTIPLE if size else ROW_MULTIPLE


def _filled_mask(may_see_PP: Tensor) -> Tensor:
    """Return the mask of a row that is filled up: what is added sees itself and nothing else does."""
    more = _more(len(may_see_PP))
    return nn.functional.pad(may_see_PP, (0, more, 0, more)).fill_diagonal_(fill_value=True)


def _filled_behind(may_see_NM: Tensor) -> Tensor:
    """Return the mask of N positions that see M - N prompts' tokens and themselves, with both rows filled up."""
    num_asked, num_seen = may_see_NM.shape
    read, own = may_see_NM.split([num_seen - num_asked, num_asked], dim=1)
    filled = _filled_mask(own)
    before = nn.functional.pad(read, (0, _more(read.shape[1]), 0, len(filled) - num_asked))
    return torch.cat([before, filled], dim=1)
