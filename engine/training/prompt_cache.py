"""Keys and values of prompts for Hugging Face's models, read once and then constants.

Invariant: once it is fixed no forward pass changes it, so that a layer may be computed again in the backward pass.
"""

from typing import Any

import torch
from torch import Tensor
from transformers import DynamicCache


class PromptCache(DynamicCache):
    """A cache that takes what is read and then only shows it, before what each forward pass adds."""

    def __init__(self, config: Any) -> None:
        """Make an empty cache for the layers of a model, by its configuration."""
        super().__init__(config=config)
        self._is_fixed = False

    def fixed(self) -> "PromptCache":
        """Take nothing more from now on. Return itself."""
        self._is_fixed = True
        return self

    def update(
        self, key_states: Tensor, value_states: Tensor, layer_idx: int, *args: Any, **kwargs: Any
    ) -> tuple[Tensor, Tensor]:
        """Return a layer's keys and values with these behind them, axes [B, K, L, D]; keep them unless it is fixed."""
        if not self._is_fixed:
            whole: tuple[Tensor, Tensor] = super().update(key_states, value_states, layer_idx, *args, **kwargs)
            return whole
        layer = self.layers[layer_idx] if layer_idx < len(self.layers) else None
        if layer is None or not layer.is_initialized:
            return key_states, value_states
        return torch.cat([layer.keys, key_states], dim=-2), torch.cat([layer.values, value_states], dim=-2)
