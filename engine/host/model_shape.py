"""The shape of a model, from its config.json: what its sizes follow from, in memory and in the cache."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from engine.training.step_memory import StepMemory

UNTOLD_CONTEXT = 8192  # tokens, of a model that names no limit


@dataclass(frozen=True)
class ModelShape:
    """The figures of a config.json that decide about memory."""

    num_layers: int
    hidden: int
    intermediate: int
    num_heads: int
    num_kv_heads: int
    head_dim: int
    vocab_size: int
    context_tokens: int  # the model's own limit
    is_tied: bool

    @classmethod
    def of(cls, whole: Mapping[str, Any]) -> Self:
        """Return the shape in a configuration; of several parts, that of the text."""
        text = whole.get("text_config") or whole
        heads = int(text["num_attention_heads"])
        return cls(
            num_layers=int(text["num_hidden_layers"]),
            hidden=int(text["hidden_size"]),
            intermediate=int(text["intermediate_size"]),
            num_heads=heads,
            num_kv_heads=int(text.get("num_key_value_heads") or heads),
            head_dim=int(text.get("head_dim") or int(text["hidden_size"]) // heads),
            vocab_size=int(text["vocab_size"]),
            context_tokens=int(text.get("max_position_embeddings") or UNTOLD_CONTEXT),
            is_tied=bool(whole.get("tie_word_embeddings", text.get("tie_word_embeddings", True))),
        )

    @classmethod
    def in_folder(cls, folder: Path) -> Self:
        """Return the shape of the model in a folder. Blocking: one small file."""
        return cls.of(json.loads((folder / "config.json").read_text(encoding="utf-8")))

    def kv_bytes_per_token(self, value_bytes: int) -> int:
        """Return what one token takes in the cache: keys and values of every layer."""
        return 2 * self.num_layers * self.num_kv_heads * self.head_dim * value_bytes

    @property
    def num_weights(self) -> int:
        """Return the number of values, without norms and biases."""
        attention = 2 * self.hidden * self.head_dim * (self.num_heads + self.num_kv_heads)
        layers = self.num_layers * (attention + 3 * self.hidden * self.intermediate)
        return layers + self.vocab_size * self.hidden * (1 if self.is_tied else 2)

    def num_adapter_values(self, rank: int) -> int:
        """Return the number of values of an adapter on every linear layer of the blocks."""
        queries, keys = self.num_heads * self.head_dim, self.num_kv_heads * self.head_dim
        sides = 2 * (self.hidden + queries) + 2 * (self.hidden + keys) + 3 * (self.hidden + self.intermediate)
        return self.num_layers * rank * sides

    @property
    def step(self) -> StepMemory:
        """The memory of its training steps."""
        return StepMemory(self.num_layers, self.hidden, self.intermediate)
