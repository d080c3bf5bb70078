"""The memory that a model needs here, from its config.json: weights, adapters, training and whole conversations.

An estimate for people (`heed models`); the cache itself is sized by `engine.host.sizing`. All sizes are bytes.
"""

from dataclasses import dataclass

from engine.config import EngineConfig
from engine.host.model_shape import ModelShape
from engine.host.sizing import FULL_CONTEXTS, LEAST_CACHE_BYTES, LONGEST_CPU_CONTEXT

RUNTIME_BYTES = 1_500_000_000  # heed, vLLM's processes and PyTorch, without the model
_SCORING_BYTES = 20  # for each entry of the vocabulary and scored position (measured)
_SCORED_POSITIONS = 64
_ADAPTER_COPIES = 6  # of the adapter in training: values, gradients, two moments, the last one and a candidate


@dataclass(frozen=True)
class MemoryNeed:
    """The memory a model takes, by what it is for. `kv_cache` is what FULL_CONTEXTS take."""

    weights: int  # on a CPU twice: as training reads them, and as vLLM's products have them packed
    adapters: int  # of vLLM's slots: on a CPU at the rank that is trained, on a GPU at the greatest
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


def memory_need(
    shape: ModelShape, config: EngineConfig, value_bytes: int, num_slots: int, *, is_cpu: bool
) -> MemoryNeed:
    """Return the memory of a model with `num_slots` adapters in vLLM and one in training, by ordinary micro-batches."""
    rank = config.learn.lora_rank if is_cpu else config.host.max_lora_rank
    context = config.host.max_model_len or min(shape.context_tokens, LONGEST_CPU_CONTEXT)
    scoring = _SCORED_POSITIONS * shape.vocab_size * _SCORING_BYTES
    return MemoryNeed(
        weights=shape.num_weights * value_bytes * (2 if is_cpu else 1),
        adapters=adapter_bytes(shape, rank, value_bytes, num_slots),
        training=training_bytes(shape, config, shape.step.kept(config.learn.micro_batch_tokens)) + scoring,
        kv_cache=max(LEAST_CACHE_BYTES, FULL_CONTEXTS * context * shape.kv_bytes_per_token(value_bytes)),
    )


def adapter_bytes(shape: ModelShape, rank: int, value_bytes: int, num_slots: int) -> int:
    """Return what vLLM's slots for adapters take, each with room for this rank."""
    return num_slots * shape.num_adapter_values(rank) * value_bytes


def training_bytes(shape: ModelShape, config: EngineConfig, step_bytes: int) -> int:
    """Return what an update takes besides logits: the activations of its largest step, and its adapter's values."""
    return step_bytes + _ADAPTER_COPIES * 4 * shape.num_adapter_values(config.learn.lora_rank)
