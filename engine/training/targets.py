"""The distributions of a teacher or a reference at every response position of every sample.

Owns the kept values: log-probabilities over the whole vocabulary if they fit, at half precision if they fit so, else
the hidden states they are projected from again in every step; of a teacher that is guided, those of the base model
beside them. Invariant: nothing kept here carries a gradient.
"""

from collections.abc import Sequence

import torch
from torch import Tensor

from engine.config import LearnConfig
from engine.sample import Sample
from engine.training import sdpo
from engine.training.batching import Batch
from engine.training.model import TrainingModel
from engine.training.step_memory import KEPT_BYTES

_KEPT_TYPES = (torch.float32, torch.float16)  # the first that fits; half precision has 11 bits, -10 nats to .005


class Targets:
    """Values by sample, each with axes [R, V] or [R, H] for its R response positions; [R, 2 H] if it is guided."""

    def __init__(
        self,
        model: TrainingModel,
        num_positions: int,
        *,
        must_be_logprobs: bool = False,
        guidance_scale: float = 1.0,
    ) -> None:
        """Choose what to keep by `num_positions`, the response tokens of all samples. The rest as in LearnConfig."""
        self._model = model
        size = num_positions * model.vocab_size
        fitting = [kept for kept in _KEPT_TYPES if size * kept.itemsize <= KEPT_BYTES]
        self._is_hidden = not fitting and not must_be_logprobs
        self._type = fitting[0] if fitting else torch.float32
        self._scale = guidance_scale
        self._values: dict[int, Tensor] = {}

    def put_hidden(self, batch: Batch, hidden_NH: Tensor) -> None:
        """Store the distributions of one forward pass's hidden states."""
        if not self._is_hidden:
            self._put(batch, self._project(hidden_NH))
        else:
            self._put(batch, hidden_NH.detach().repeat(1, 2 if self._is_guided else 1))

    def guide_openings(self, batch: Batch, base_NH: Tensor) -> None:
        """Guide the first positions of these samples, as many as the batch has, away from these hidden states."""
        guided = self._guided(self._begun(batch), base_NH)
        for i, first in zip(batch.samples, guided.split(batch.lengths), strict=True):
            self._values[i] = torch.cat([first, self._values[i][len(first) :]])

    def surer_by(self, batch: Batch, base_NH: Tensor) -> float:
        """Return by how many nats guidance makes the teacher surer, summed over these samples' first positions."""
        kept = self._begun(batch)
        return float(sdpo.surer_by(self.logprobs(self._guided(kept, base_NH)), self.logprobs(kept)).sum())

    def _begun(self, batch: Batch) -> Tensor:
        return torch.cat([self._values[i][:n] for i, n in zip(batch.samples, batch.lengths, strict=True)])

    def guide_last(self, batch: Batch, base_NH: Tensor) -> None:
        """Guide the last position of each of these samples away from the base model, given by its hidden states."""
        kept, is_last_N = self.rows(batch.samples), batch.is_last_N
        kept[is_last_N] = self._guided(kept[is_last_N], base_NH[is_last_N])
        self._values |= zip(batch.samples, kept.split(batch.lengths), strict=True)

    def _guided(self, kept: Tensor, base_NH: Tensor) -> Tensor:
        if self._is_hidden:
            return torch.cat([kept.chunk(2, -1)[0], base_NH.detach()], dim=-1)
        return sdpo.guided(kept.float(), self._project(base_NH), self._scale).to(self._type)

    def put_logits(self, batch: Batch, logits_NV: Tensor) -> None:
        """Store the distributions of these logits. Only with `must_be_logprobs`."""
        self._put(batch, logits_NV.detach().log_softmax(-1))

    def _put(self, batch: Batch, values: Tensor) -> None:
        values = values if self._is_hidden else values.to(self._type)
        for i in batch.samples:
            self._values[i] = values[batch.owners_N == i]

    def rows(self, samples: Sequence[int]) -> Tensor:
        """Return the kept values of these samples, one after another."""
        return torch.cat([self._values[i] for i in samples])

    def logprobs(self, rows: Tensor) -> Tensor:
        """Return the log-probabilities, axes [N, V], of values that came from `rows`."""
        if not self._is_hidden:
            return rows.float()
        if not self._is_guided:
            return self._project(rows)
        teacher, base = rows.chunk(2, -1)
        return sdpo.guided(self._project(teacher), self._project(base), self._scale)

    @property
    def _is_guided(self) -> bool:
        return self._scale != 1.0

    def _project(self, hidden_NH: Tensor) -> Tensor:
        with torch.no_grad():
            return self._model.logits(hidden_NH).log_softmax(-1)


def targets_of(model: TrainingModel, samples: Sequence[Sample], learn: LearnConfig) -> dict[str, Targets]:
    """Return the empty targets of an update, by what they are for."""
    positions = sum(len(s.response_ids) for s in samples)
    modes = {sample.teacher_mode(learn) for sample in samples}
    teacher = Targets(
        model,
        positions,
        must_be_logprobs=not modes.isdisjoint(("external", "trust_region")),
        guidance_scale=learn.guidance_scale,
    )
    return {"teacher": teacher, **{name: Targets(model, positions) for name in ("reference", "base", "parent")}}
