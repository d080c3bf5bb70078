"""The mini-batches that each step trains the student on, cut into micro-batches.

Owns the order of the samples, the weight of each position and its importance weight. With `learn.whole_first_step` the
first step takes every sample, and its figures are the report on the version before; else they were measured ahead. All
others take a mini-batch each: many rough steps get further than few exact ones of the same work (ADR 10). Invariants:
an epoch holds every sample once, in a new order; samples that are not taught are spread evenly over its mini-batches,
and each of them teaches something.

Coefficients, over the samples i of one step with R_i response positions: c_i = weight_i, for anchors times
anchor_weight; a position t counts c_i v_t / (sum_t v_t sum c), with v_t = opening_weight for an answer's first tokens,
closing_weight for its last (the larger of both where it is one of the first) and 1 for the others.
"""

import math
import random
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor

from engine.config import LearnConfig
from engine.config.learning import OPENING_TOKENS
from engine.sample import Sample
from engine.training import sdpo
from engine.training.batching import Batch, plan_batches


@dataclass
class StudentBatch:
    """A micro-batch of the student with everything its loss needs; axis [N] unless said."""

    batch: Batch
    weights_N: Tensor  # the weight of a position
    kl_weights_N: Tensor  # the same, zero on anchors
    behaviour_N: Tensor  # vLLM's log-probabilities, NaN for tokens without any
    temperature_N: Tensor  # at which each position was sampled
    importance_N: Tensor  # truncated importance weights; measured before or in the first step, 1 until then
    rows: dict[str, Tensor] = field(default_factory=dict)  # kept values by name of the targets


class MiniBatches:
    """The samples an update trains on, step by step."""

    def __init__(self, samples: Sequence[Sample], learn: LearnConfig, device: torch.device) -> None:
        """Cut the samples of an update; those that are only measured are left out."""
        self._samples = samples
        self._learn = learn
        self._device = device
        self.indices = [i for i, s in enumerate(samples) if not s.is_held_out]
        self.all = self._batches(self.indices, {})

    def steps(self) -> Iterator[list[StudentBatch]]:
        """Yield the micro-batches of one step after another, mini-batches without end; the first may be of all samples.

        Their importance weights have been measured by the second step, and by the first one if it is a mini-batch.
        """
        if self._learn.whole_first_step:
            yield self.all
        measured = {i: b.importance_N[b.batch.owners_N == i] for b in self.all for i in b.batch.samples}
        rng = random.Random(self._learn.seed)
        while True:
            for mini_batch in self._epoch(rng):
                yield self._batches(mini_batch, measured)

    def _epoch(self, rng: random.Random) -> list[list[int]]:
        teaching = [i for i in self.indices if self._samples[i].is_taught and self._samples[i].weight > 0]
        company = [i for i in self.indices if i not in teaching]
        rng.shuffle(teaching)
        rng.shuffle(company)
        count = min(len(teaching), math.ceil(len(self.indices) / self._learn.mini_batch_samples))
        return [teaching[k::count] + company[k::count] for k in range(count)]

    def _batches(self, indices: Iterable[int], importance: dict[int, Tensor]) -> list[StudentBatch]:
        chosen = list(indices)
        total = sum(self._coefficient(self._samples[i]) for i in chosen)
        planned = plan_batches(self._samples, chosen, "student", self._learn.micro_batch_tokens, self._device)
        return [self._batch(batch, total, importance) for batch in planned]

    def _batch(self, batch: Batch, total: float, importance: dict[int, Tensor]) -> StudentBatch:
        samples = [self._samples[i] for i in batch.samples]
        weights = [self._coefficient(s) / total for s in samples]
        ones = [torch.ones(len(s.response_ids), device=self._device) for s in samples]
        return StudentBatch(
            batch,
            weights_N=self._shared(samples, weights),
            kl_weights_N=self._shared(
                samples, [w if s.is_taught else 0.0 for w, s in zip(weights, samples, strict=True)]
            ),
            behaviour_N=torch.tensor([value for s in samples for value in _behaviour(s)], device=self._device),
            temperature_N=self._spread(samples, [s.temperature for s in samples]),
            importance_N=torch.cat([importance.get(i, one) for i, one in zip(batch.samples, ones, strict=True)]),
        )

    def _shared(self, samples: Sequence[Sample], weights: Sequence[float]) -> Tensor:
        """Share the weight of each sample among its response positions, the first and last of which count more."""
        shares: list[float] = []
        for sample, weight in zip(samples, weights, strict=True):
            counts = self._counts(len(sample.response_ids))
            shares += [weight * count / sum(counts) for count in counts]
        return torch.tensor(shares, device=self._device)

    def _counts(self, length: int) -> list[float]:
        counts = ([self._learn.opening_weight] * OPENING_TOKENS + [1.0] * length)[:length]
        return [*counts[:-1], max(counts[-1], self._learn.closing_weight)]

    def _spread(self, samples: Sequence[Sample], values: Sequence[float]) -> Tensor:
        """Repeat one value per sample for each of its response positions."""
        spread = [value for s, value in zip(samples, values, strict=True) for _ in s.response_ids]
        return torch.tensor(spread, device=self._device)

    def _coefficient(self, sample: Sample) -> float:
        return sample.weight * (self._learn.anchor_weight if sample.is_anchor else 1.0)

    # -- importance weights ------------------------------------------------------------------------------------------

    def weigh(self, student: StudentBatch, chunk: slice, trainer_N: Tensor, own: dict[int, Tensor]) -> None:
        """Set the importance weights of a chunk from the trainer's log-probabilities of its tokens. In place.

        `own`: by sample, those under the prompt it was sampled with, if it differs from the student's.
        """
        trainer = trainer_N.clone()
        for i, logprobs in own.items():
            is_own = student.batch.owners_N == i
            if bool(is_own.any()):
                whole = torch.zeros_like(student.weights_N)
                whole[is_own] = logprobs
                trainer = torch.where(is_own[chunk], whole[chunk], trainer)
        behaviour = student.behaviour_N[chunk]
        stored = torch.where(behaviour.isnan(), trainer, behaviour)
        student.importance_N[chunk] = sdpo.importance_weights(trainer, stored, self._learn.is_clip)

    def importance_summary(self) -> dict[str, float]:
        """Summarise how far trainer and vLLM are apart, over positions with stored log-probabilities."""
        weights = torch.cat([s.importance_N[~s.behaviour_N.isnan()] for s in self.all])
        if not len(weights):
            return {}
        return {
            "mean": float(weights.mean()),
            "max": float(weights.max()),
            "clipped": float((weights >= self._learn.is_clip).float().mean()),
            "mean_abs_log": float(weights.log().abs().mean()),
        }


def _behaviour(sample: Sample) -> list[float]:
    return sample.behaviour_logprobs or [math.nan] * len(sample.response_ids)
