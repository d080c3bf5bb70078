"""The floor of an update: seconds that no implementation of it can go below on a device. Pure.

Counted are the products with frozen weights, forward, and backward to the activations alone (frozen weights have no
gradient), over real tokens without padding; each micro-batch reads all weights once in each direction. Attention,
norms, the adapters and the optimizer are left out, so the floor lies below what is possible. A phase takes at least as
long as its products at the device's best rate, and as its weights at the memory's.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from bench.gpu.peaks import Peaks
from engine.config import LearnConfig
from engine.config.learning import OPENING_TOKENS
from engine.host.model_shape import ModelShape
from engine.sample import Context, Sample

VALUE_BYTES = 2  # bfloat16
FORWARD, BACKWARD = 1, 1  # passes over the weights' products for a step; only activations need gradients


@dataclass(frozen=True)
class Work:
    """Floating-point operations, and bytes of weights read."""

    flops: float = 0.0
    bytes: float = 0.0

    def __add__(self, other: "Work") -> "Work":
        """Return both together."""
        return Work(self.flops + other.flops, self.bytes + other.bytes)

    def __mul__(self, count: float) -> "Work":
        """Return it several times."""
        return Work(self.flops * count, self.bytes * count)

    def seconds(self, peaks: Peaks) -> float:
        """Return how long it takes at least."""
        return max(self.flops / peaks.flops_per_s, self.bytes / peaks.bytes_per_s)


def update_work(shape: ModelShape, samples: Sequence[Sample], learn: LearnConfig) -> dict[str, Work]:
    """Return the work of each phase of an update of a fresh adapter (`engine.training.training_update`)."""
    taught = [sample for sample in samples if sample.is_taught]
    teacher = _passes(shape, samples, "teacher", learn)
    if learn.guidance_scale != 1:
        begun = [(s.plain_ids or s.student_ids, s.response_ids[:OPENING_TOKENS]) for s in taught]
        teacher += _passes(shape, taught, "student", learn) + _pass(shape, begun, learn)
    whole = _passes(shape, samples, "student", learn)
    share = min(1.0, learn.mini_batch_samples / max(1, len(samples)))
    step = Work(whole.flops * share, _weights_bytes(shape)) * (FORWARD + BACKWARD)
    return {"teacher": teacher, "steps": step * learn.steps, "final": whole}


def _passes(shape: ModelShape, samples: Iterable[Sample], context: Context, learn: LearnConfig) -> Work:
    return _pass(shape, [(sample.prompt(context), sample.response_ids) for sample in samples], learn)


def _pass(shape: ModelShape, rows: Sequence[tuple[Sequence[int], Sequence[int]]], learn: LearnConfig) -> Work:
    """Return one forward pass over prompts and answers, with logits where an answer is predicted."""
    tokens = sum(len(prompt) + len(answer) for prompt, answer in rows)
    predicted = sum(len(answer) for _, answer in rows)
    flops = 2.0 * tokens * _layer_weights(shape) + 2.0 * predicted * shape.vocab_size * shape.hidden
    return Work(flops, max(1.0, tokens / learn.micro_batch_tokens) * _weights_bytes(shape))


def _layer_weights(shape: ModelShape) -> int:
    return shape.num_weights - shape.vocab_size * shape.hidden * (1 if shape.is_tied else 2)


def _weights_bytes(shape: ModelShape) -> float:
    return float(VALUE_BYTES * (_layer_weights(shape) + shape.vocab_size * shape.hidden))
