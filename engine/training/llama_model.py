"""The training forward for Llama's family (Llama, Mistral, Qwen2, Qwen3) on a CPU, in the weights' own type.

Where the products are quick, a step of Hugging Face and PEFT goes mostly into what stands between them: a dozen small
operations for each norm and rotation, and copies between two types of numbers. Here query, key and value are one
product with one adapter, and every operation has a backward pass of its own (`engine.training.llama_ops`). Prompts are
read without a gradient, in a row of their own (`engine.training.packing`). Invariants: base weights are never changed;
equal to Hugging Face with PEFT to rounding (a test compares values and gradients).
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from engine.training.batching import Batch
from engine.training.fused_layers import DecoderLayer
from engine.training.lean_ops import rms_norm
from engine.training.llama_ops import attention, gated, packed_rotary, reading_attention, stacked_linear
from engine.training.lora_slot import LoraSlot
from engine.training.packing import TokenRow, pack, unpadded
from engine.training.row_pieces import RowPiece, answer_pieces, row_pieces
from engine.training.stacked_model import Loras, StackedModel


@dataclass(frozen=True)
class RowContext:
    """The tables, pieces and adapters that all layers of one forward pass over a row share."""

    cos: Tensor  # [P, 1, D / 2]
    sin: Tensor
    pieces: list[RowPiece]
    loras: list[Loras]
    anchor: Tensor


class LlamaModel(StackedModel):
    """Forward passes with or without a LoRA slot; the counterpart of `engine.training.peft_model.PeftTrainingModel`."""

    # -- forward -----------------------------------------------------------------------------------------------------

    def hidden(self, slot: LoraSlot | None, batch: Batch) -> Tensor:
        """Return the last hidden states at the response positions, axes [N, H]; gradients go through these alone."""
        packed = pack(batch)
        with torch.no_grad():
            read = self._read(slot, packed.read)
        row = self._row(slot, packed.asked, answer_pieces(packed))
        x = self._embedding[packed.asked.ids_P]
        for index in range(self.num_layers):
            seen = attention(self._asked(index, x, row), self._heads, row.pieces, read[index])
            x = self._behind(index, x, seen, row)
        return rms_norm(x, self._final_norm, self._eps)

    def _read(self, slot: LoraSlot | None, tokens: TokenRow) -> list[Tensor | None]:
        """Return the keys and values of the prompts in each layer, axes [2 K, P, D]."""
        if not len(tokens.ids_P):
            return [None] * self.num_layers
        row = self._row(slot, tokens, row_pieces(tokens))
        x, found = self._embedding[tokens.ids_P], []
        for index in range(self.num_layers):
            is_last = index == self.num_layers - 1  # of which nothing is looked at but keys and values
            pieces = [] if is_last else row.pieces
            seen, sides = reading_attention(self._asked(index, x, row), self._heads, pieces)
            found.append(sides)
            if not is_last:
                x = self._behind(index, x, seen, row)
        return found

    def layer_states(self, input_ids_BL: Tensor, layers: Sequence[int]) -> list[Tensor]:
        """Return the base model's states behind some layers, axes [B, L, H] each; those of the last one are normed."""
        tokens = unpadded(input_ids_BL)
        row = self._row(None, tokens, row_pieces(tokens))

        def behind(index: int, x: Tensor) -> Tensor:
            seen, _ = reading_attention(self._asked(index, x, row), self._heads, row.pieces)
            return self._behind(index, x, seen, row)

        return self._states_behind(input_ids_BL, layers, behind)

    def _row(self, slot: LoraSlot | None, tokens: TokenRow, pieces: list[RowPiece]) -> RowContext:
        cos, sin = (table[..., : self._heads.size // 2] for table in self._angles(tokens.positions_P))
        return RowContext(cos, sin, pieces, *self._loras(slot))

    def _asked(self, index: int, x: Tensor, row: RowContext) -> Tensor:
        """Return a layer's queries, keys and values, rotated, axes [P, (H + 2 K) D]."""
        layer = self._layers[index]
        qkv = self._linear("qkv", index, rms_norm(x, layer.input_norm, self._eps), row)
        return packed_rotary(self._normed(qkv, layer), row.cos, row.sin, self._heads)

    def _behind(self, index: int, x: Tensor, seen: Tensor, row: RowContext) -> Tensor:
        """Return the states behind a layer, axes [P, H], of those before it and what they attended to."""
        x = x + self._linear("out", index, seen, row)
        normed = rms_norm(x, self._layers[index].post_norm, self._eps)
        activated = gated(self._linear("gate", index, normed, row), self._linear("up", index, normed, row))
        return x + self._linear("down", index, activated, row)

    def _linear(self, name: str, index: int, x: Tensor, row: RowContext) -> Tensor:
        fused = self._layers[index].fused[name]
        return stacked_linear(x, row.anchor, fused.weight, fused.bias, row.loras[index][name])

    def _normed(self, qkv: Tensor, layer: DecoderLayer) -> Tensor:
        if layer.qk_norm is None:
            return qkv
        by_head = qkv.view(len(qkv), -1, self._heads.size)
        qk, v = by_head.split([self._heads.num_normed, self._heads.num_kv], dim=1)
        return torch.cat([rms_norm(qk, layer.qk_norm, self._eps), v], dim=1).flatten(1)
