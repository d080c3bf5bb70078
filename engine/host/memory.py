"""The memory that a model needs here, from its config.json: weights, adapters, training and whole conversations.

An estimate for people (`heed models`); the cache itself is sized by `engine.host.sizing`. All sizes are bytes.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

from engine.config import EngineConfig
from engine.host.sizing import FULL_CONTEXTS, LEAST_CACHE_BYTES, LONGEST_CPU_CONTEXT

RUNTIME_BYTES = 1_500_000_000  # heed, vLLM's processes and PyTorch, without the model
_SCORING_BYTES = 20  # for each entry of the vocabulary and scored position (measured)
_SCORED_POSITIONS = 64
_ADAPTER_COPIES = 6  # of the adapter in training: values, gradients, two moments, the last one and a candidate


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
            context_tokens=int(text.get("max_position_embeddings") or LONGEST_CPU_CONTEXT),
            is_tied=bool(whole.get("tie_word_embeddings", text.get("tie_word_embeddings", True))),
        )

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
    def activation_bytes_per_token(self) -> int:
        """Return what a training step keeps for each token, over all layers (measured on an 8B model)."""
        return self.num_layers * 8 * (3 * self.hidden + 2 * self.intermediate)


@dataclass(frozen=True)
class MemoryNeed:
    """The memory a model takes, by what it is for. `kv_cache` is what four contexts take."""

    weights: int
    adapters: int
    training: int
    kv_cache: int

    @property
    def fixed(self) -> int:
        """Everything but the cache, with the processes themselves."""
        return self.weights + self.adapters + self.training + RUNTIME_BYTES

    @property
    def total(self) -> int:
        """Everything."""
        return self.fixed + self.kv_cache


def memory_need(shape: ModelShape, config: EngineConfig, value_bytes: int, num_slots: int) -> MemoryNeed:
    """Return the memory of a model with `num_slots` adapters in vLLM and one in training."""
    host, learn = config.host, config.learn
    context = host.max_model_len or min(shape.context_tokens, LONGEST_CPU_CONTEXT)
    training = (
        learn.micro_batch_tokens * shape.activation_bytes_per_token
        + _SCORED_POSITIONS * shape.vocab_size * _SCORING_BYTES
        + _ADAPTER_COPIES * 4 * shape.num_adapter_values(learn.lora_rank)
    )
    return MemoryNeed(
        weights=shape.num_weights * value_bytes,
        adapters=num_slots * shape.num_adapter_values(host.max_lora_rank) * value_bytes,
        training=training,
        kv_cache=max(LEAST_CACHE_BYTES, FULL_CONTEXTS * context * shape.kv_bytes_per_token(value_bytes)),
    )
