"""The plan of a GPU's memory: a pure function of the model's shape, the settings and the card.

vLLM takes its share at once (weights, adapters, its own working memory, and the cache with what is left); learning
works beside it. Computed, and held against no GPU yet: docs/OPERATING.md has the table. All sizes are bytes.
"""

from dataclasses import dataclass, replace

from engine.config import EngineConfig
from engine.errors import EngineStartError
from engine.host.architectures import Trainability
from engine.host.memory import adapter_bytes, training_bytes
from engine.host.model_shape import ModelShape
from engine.host.sizing import LEAST_OF_GPU, MOST_OF_GPU, SHORTEST_CONTEXT
from engine.training.step_memory import CHUNK_ELEMENTS, KEPT_BYTES, KEPT_SHARE

VALUE_BYTES = 2  # bfloat16
VLLM_BYTES = 2 << 30  # CUDA's context, vLLM's own activations and graphs
PROJECTED_BYTES = 20 * CHUNK_ELEMENTS  # logits of one piece of a micro-batch, with all that is made of them (measured)


@dataclass(frozen=True)
class GpuPlan:
    """The parts of one card's memory. `cache` is what is left for conversations, below 0 if the model is too large."""

    total: int
    weights: int
    adapters: int
    training: int
    cache: int
    share: float  # of the card, for vLLM

    def cache_tokens(self, shape: ModelShape) -> int:
        """Return how many tokens of conversations the cache holds."""
        return max(0, self.cache) // shape.kv_bytes_per_token(VALUE_BYTES)


def gpu_plan(
    shape: ModelShape, config: EngineConfig, total_bytes: int, stored_weights: int = 0, *, learns: bool = True
) -> GpuPlan:
    """Return the plan for a card of `total_bytes` and the longest sample that a lesson may have.

    `stored_weights`: the bytes of the model's files, which are fewer if it is quantised; 0 if they are not known.
    """
    host, learn = config.host, config.learn
    longest = max(learn.micro_batch_tokens, min(learn.max_sequence_tokens, shape.context_tokens))
    step = shape.step.most(longest, int(KEPT_SHARE * total_bytes))
    training = training_bytes(shape, config, step) + PROJECTED_BYTES + KEPT_BYTES if learns else 0
    adapters = adapter_bytes(shape, host.max_lora_rank, VALUE_BYTES, host.max_loras_gpu) if learns else 0
    weights = shape.num_weights * VALUE_BYTES
    weights = min(weights, stored_weights or weights)
    share = host.gpu_memory_utilization or min(MOST_OF_GPU, 1 - training / total_bytes)
    cache = int(share * total_bytes) - weights - adapters - VLLM_BYTES
    return GpuPlan(total_bytes, weights, adapters, training, cache, share)


def shortfall(plan: GpuPlan, shape: ModelShape) -> int:
    """Return the bytes that are missing for one short conversation, 0 if there is room."""
    needed = plan.weights + plan.adapters + VLLM_BYTES + SHORTEST_CONTEXT * shape.kv_bytes_per_token(VALUE_BYTES)
    share = max(plan.share, LEAST_OF_GPU)
    return max(0, needed - int(share * plan.total), needed + plan.training - plan.total)


def require_room(plan: GpuPlan, shape: ModelShape) -> None:
    """Raise EngineStartError if the card is too small."""
    if not shortfall(plan, shape):
        return
    parts = (plan.total, plan.weights, plan.adapters, plan.training)
    total, weights, adapters, training = (size >> 20 for size in parts)
    raise EngineStartError(
        f"The GPU has {total} MB. This model needs {weights} MB for its weights, {adapters} MB for adapters and "
        f"{training} MB for learning, which leaves no room for a conversation. Set HEED_MODEL to a smaller model, "
        "HEED_LEARN_MAX_SEQUENCE_TOKENS lower, or HEED_HOST_MAX_LORAS_GPU lower."
    )


def with_room(
    trainability: Trainability, shape: ModelShape, config: EngineConfig, total_bytes: int, stored_weights: int
) -> Trainability:
    """Return the same, or a model that is served and does not learn if the card has room for no more than that."""
    if not trainability.can_learn:
        return trainability
    learning, serving = (
        gpu_plan(shape, config, total_bytes, stored_weights, learns=learns) for learns in (True, False)
    )
    missing = shortfall(learning, shape)
    return replace(trainability, missing_bytes=missing) if missing and not shortfall(serving, shape) else trainability
