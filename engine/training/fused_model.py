"""The part that heed's own forwards have in common: the weights of a Hugging Face model, slots, states behind layers.

Invariants: base weights are never changed; a layer is taken out of the Hugging Face model as it is fused, so that its
weights are there twice for one layer at a time.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, Generic, Protocol, TypeVar

from torch import Tensor, nn

from engine.training.adapter_tensors import AdapterTensors
from engine.training.fused_layers import DecoderLayer, Fusion, decoder_layer, new_slot
from engine.training.lean_ops import HeadLayout, rms_norm
from engine.training.lora_slot import LoraShape, LoraSlot


class HasSlot(Protocol):
    """A slot with the values that a forward has made of it."""

    slot: LoraSlot


A = TypeVar("A", bound=HasSlot)


class FusedModel(ABC, Generic[A]):
    """The weights and slots of a model of Llama's family, for a forward that computes it by fused layers."""

    def __init__(self, base: Any, base_name: str, fusion: Fusion) -> None:
        """Take the weights out of a Hugging Face model of the family, which computes nothing afterwards."""
        config = base.config
        self.base_name = base_name
        self._eps = float(config.rms_norm_eps)
        size = getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads
        self._heads = HeadLayout(config.num_attention_heads, config.num_key_value_heads, size)
        self._embedding: Tensor = base.get_input_embeddings().weight.detach()
        self._head: Tensor = base.get_output_embeddings().weight.detach()
        self._final_norm: Tensor = base.model.norm.weight.detach()
        self._layers = [self._take(base.model.layers, i, fusion) for i in range(config.num_hidden_layers)]
        self._slots: dict[tuple[LoraShape, str], A] = {}

    def _take(self, layers: Any, index: int, fusion: Fusion) -> DecoderLayer:
        layer, layers[index] = layers[index], nn.Identity()
        return decoder_layer(layer.state_dict(), index, fusion, self._heads)

    @abstractmethod
    def _adapted(self, slot: LoraSlot) -> A:
        """Return a new slot with what this forward makes of its values."""

    @property
    def device(self) -> Any:
        """The device of the model."""
        return self._embedding.device

    @property
    def vocab_size(self) -> int:
        """Rows of the output matrix."""
        return len(self._head)

    @property
    def num_layers(self) -> int:
        """The number of decoder layers."""
        return len(self._layers)

    def slot(self, shape: LoraShape, role: str = "train") -> LoraSlot:
        """Return the slot of this shape and role, made on first use."""
        if (shape, role) not in self._slots:
            slot = new_slot([layer.fused for layer in self._layers], shape, self.base_name)
            self._slots[shape, role] = self._adapted(slot)
        return self._slots[shape, role].slot

    def forget_slots(self) -> None:
        """Free the memory of the slots. In place."""
        self._slots.clear()

    def _known(self, slot: LoraSlot) -> A:
        """Return what was made of a slot of this model."""
        return next(adapted for adapted in self._slots.values() if adapted.slot is slot)

    def zero_adapter(self, target_modules: tuple[str, ...]) -> AdapterTensors:
        """Return the base model as an adapter of rank 1: every value zero."""
        return self.slot(LoraShape(1, 1, target_modules)).export()

    def _states_behind(
        self, input_ids_BL: Tensor, layers: Sequence[int], behind: Callable[[int, Tensor], Tensor]
    ) -> list[Tensor]:
        """Return the states behind some layers, axes [B, L, H] each; those of the last one are normed.

        `behind` computes one layer: its index and the states before it, axes [B L, H], to those behind it.
        """
        shape = (*input_ids_BL.shape, -1)
        x, found = self._embedding[input_ids_BL.flatten()], {}
        for index in range(max(layers)):
            x = behind(index, x)
            found[index + 1] = x.view(shape)
        if self.num_layers in found:
            found[self.num_layers] = rms_norm(x, self._final_norm, self._eps).view(shape)
        return [found[layer] for layer in layers]
