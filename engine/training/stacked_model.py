"""The part that the forwards for Llama's family have in common: which models they compute, adapters in the base's type.

Invariant: a slot's values are in the base's type as they were at its newest revision.
"""

from dataclasses import dataclass
from typing import Any

from torch import Tensor, nn

from engine.training.fused_layers import ATTENTION, FusedLayer, tensor_name
from engine.training.fused_model import FusedModel
from engine.training.llama_ops import AdaptedPart, StackedLoRA, refresh
from engine.training.lora_slot import LoraShape, LoraSlot

# Gate and up stay apart: together they are too wide for a core's cache, and halves of a row are slow to read on a GPU.
FUSED = ATTENTION | {"gate": ("mlp.gate_proj",), "up": ("mlp.up_proj",), "down": ("mlp.down_proj",)}
Loras = dict[str, StackedLoRA | None]  # of one layer, by the names of FUSED
_FAMILY = ("llama", "mistral", "qwen2", "qwen3")


def can_compute(config: Any) -> bool:
    """Return True if these forwards compute the model of a Hugging Face configuration."""
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
    loras: list[Loras]
    revision: int = -1

    def follow(self) -> None:
        """Take over the slot's values if they have changed. In place."""
        if self.revision != self.slot.revision:
            self.take()

    def take(self) -> None:
        """Take over the slot's values. In place."""
        refresh([lora for layer in self.loras for lora in layer.values() if lora is not None])
        self.revision = self.slot.revision


class StackedModel(FusedModel[StackedSlot]):
    """The weights and slots of a model of Llama's family, each adapter beside its frozen layer."""

    def __init__(self, base: Any, base_name: str) -> None:
        """Take the weights out of a Hugging Face model of the family, which computes nothing afterwards."""
        super().__init__(base, base_name, FUSED)
        self._modules = {path.rpartition(".")[2] for paths in FUSED.values() for path in paths}
        self._rotary: nn.Module = base.model.rotary_emb
        self._no_loras: list[Loras] = [dict.fromkeys(FUSED) for _ in self._layers]

    def slot(self, shape: LoraShape, role: str = "train") -> LoraSlot:
        """Return the slot of this shape and role, made on first use. Raises ValueError if the model lacks a layer."""
        missing = set(shape.target_modules) - self._modules
        if missing:
            raise ValueError(f"the model has no linear layers named {', '.join(sorted(missing))}")
        return super().slot(shape, role)

    def logits(self, hidden_NH: Tensor) -> Tensor:
        """Return the next-token logits, float32, axes [N, V]."""
        return nn.functional.linear(hidden_NH, self._head).float()

    def _adapted(self, slot: LoraSlot) -> StackedSlot:
        fused = [{name: _stacked(slot, fused) for name, fused in layer.fused.items()} for layer in self._layers]
        return StackedSlot(slot, fused)

    def _loras(self, slot: LoraSlot | None) -> tuple[list[Loras], Tensor]:
        """Return the adapters of each layer as the slot is now, and a tensor that requires a gradient if it does."""
        if slot is None:
            return self._no_loras, self._embedding
        adapted = self._known(slot)
        adapted.follow()
        return adapted.loras, slot.flat

    def _angles(self, positions_P: Tensor) -> tuple[Tensor, Tensor]:
        """Return cosine and sine of each position's angles, axes [P, 1, D]; the second half repeats the first."""
        cos, sin = self._rotary(self._embedding, positions_P[None])
        return cos[0, :, None], sin[0, :, None]


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
