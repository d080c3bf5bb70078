"""The training forward for Llama's family (Llama, Mistral, Qwen2, Qwen3) on a CPU, in the weights' own type.

Where the products are quick, a step of Hugging Face and PEFT goes mostly into what stands between them: a dozen small
operations for each norm and rotation, and copies between two types of numbers. Here query, key and value are one
product with one adapter, and every operation has a backward pass of its own (`engine.training.llama_ops`). Prompts are
read without a gradient, in a row of their own (`engine.training.packing`). Invariants: base weights are never changed;
equal to Hugging Face with PEFT to rounding (a test compares values and gradients).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from engine.training.batching import Batch
from engine.training.fused_layers import ATTENTION, DecoderLayer, FusedLayer, tensor_name
from engine.training.fused_model import FusedModel
from engine.training.lean_ops import rms_norm
from engine.training.llama_ops import (
    AdaptedPart,
    StackedLoRA,
    attention,
    gated,
    packed_rotary,
    reading_attention,
    stacked_linear,
)
from engine.training.lora_slot import LoraShape, LoraSlot
from engine.training.packing import TokenRow, pack, unpadded
from engine.training.row_pieces import RowPiece, answer_pieces, row_pieces

# Gate and up stay apart: together they are too wide for a core's cache, and take half as long again as one by one.
FUSED = ATTENTION | {"gate": ("mlp.gate_proj",), "up": ("mlp.up_proj",), "down": ("mlp.down_proj",)}
_MODULES = {path.rpartition(".")[2] for paths in FUSED.values() for path in paths}
_FAMILY = ("llama", "mistral", "qwen2", "qwen3")


def can_compute(config: Any) -> bool:
    """Return True if this forward computes the model of a Hugging Face configuration."""
    has_window = getattr(config, "sliding_window", None) and getattr(config, "use_sliding_window", True)
    return bool(
        config.model_type in _FAMILY
        and config.hidden_act == "silu"
        and not has_window
        and (config.rope_parameters or {}).get("partial_rotary_factor", 1.0) == 1.0
    )


@dataclass
class StackedSlot:
    """A slot, and its values in the base's type, as they were at one revision."""

    slot: LoraSlot
    loras: list[dict[str, StackedLoRA | None]]
    revision: int = -1

    def refresh(self) -> None:
        """Follow the slot. In place."""
        if self.revision != self.slot.revision:
            with torch.no_grad():
                for lora in (lora for layer in self.loras for lora in layer.values() if lora is not None):
                    lora.refresh()
            self.revision = self.slot.revision


@dataclass(frozen=True)
class RowContext:
    """The tables, pieces and adapters that all layers of one forward pass over a row share."""

    cos: Tensor  # [P, 1, D / 2]
    sin: Tensor
    pieces: list[RowPiece]
    loras: list[dict[str, StackedLoRA | None]]
    anchor: Tensor


class LlamaModel(FusedModel[StackedSlot]):
    """Forward passes with or without a LoRA slot; the counterpart of `engine.training.peft_model.PeftTrainingModel`."""

    def __init__(self, base: Any, base_name: str) -> None:
        """Take the weights out of a Hugging Face model of the family, which computes nothing afterwards."""
        super().__init__(base, base_name, FUSED)
        self._rotary: nn.Module = base.model.rotary_emb
        self._no_loras: list[dict[str, StackedLoRA | None]] = [dict.fromkeys(FUSED) for _ in self._layers]

    def slot(self, shape: LoraShape, role: str = "train") -> LoraSlot:
        """Return the slot of this shape and role, made on first use. Raises ValueError if the model lacks a layer."""
        missing = set(shape.target_modules) - _MODULES
        if missing:
            raise ValueError(f"the model has no linear layers named {', '.join(sorted(missing))}")
        return super().slot(shape, role)

    def _adapted(self, slot: LoraSlot) -> StackedSlot:
        fused = [{name: _stacked(slot, fused) for name, fused in layer.fused.items()} for layer in self._layers]
        return StackedSlot(slot, fused)

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

    def logits(self, hidden_NH: Tensor) -> Tensor:
        """Return the next-token logits, float32, axes [N, V]."""
        return nn.functional.linear(hidden_NH, self._head).float()

    def _row(self, slot: LoraSlot | None, tokens: TokenRow, pieces: list[RowPiece]) -> RowContext:
        cos, sin = self._rotary(self._embedding, tokens.positions_P[None])
        cos, sin = (table[0, :, None, : self._heads.size // 2] for table in (cos, sin))
        if slot is None:
            return RowContext(cos, sin, pieces, self._no_loras, self._embedding)
        adapted = self._known(slot)
        adapted.refresh()
        return RowContext(cos, sin, pieces, adapted.loras, slot.flat)

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


def _stacked(slot: LoraSlot, fused: FusedLayer) -> StackedLoRA | None:
    """Return views of the slot's values for one fused layer, or None if no part of it has LoRA."""
    parts = [
        AdaptedPart(
            outputs,
            ranks,
            *(tensors[tensor_name(path, letter)] for tensors in (slot.parameters, slot.grads) for letter in "AB"),
        )
        for path, outputs, ranks in fused.adapted(slot.shape)
    ]
    return StackedLoRA(fused.weight, parts, slot.shape.scaling) if parts else None
