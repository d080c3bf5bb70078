"""The distributions of a teacher or a reference at every response position of every sample.

Owns the kept values: log-probabilities over the whole vocabulary if they fit, else the hidden states they are
projected from again. Invariant: nothing kept here carries a gradient.
"""

from collections.abc import Sequence

import torch
from torch import Tensor

from engine.training.batching import Batch
from engine.training.model import TrainingModel

KEPT_ELEMENTS = 1 << 26  # log-probabilities kept per update: 256 MB in float32; above it hidden states are kept


class Targets:
    """Values by sample, each with axes [R, V] or [R, H] for its R response positions."""

    def __init__(self, model: TrainingModel, num_positions: int, *, must_be_logprobs: bool = False) -> None:
        """Choose what to keep by `num_positions`, the response tokens of all samples."""
        self._model = model
        self._is_hidden = num_positions * model.vocab_size > KEPT_ELEMENTS and not must_be_logprobs
        self._values: dict[int, Tensor] = {}

    def put_hidden(self, batch: Batch, hidden_NH: Tensor) -> None:
        """Store the distributions of one forward pass's hidden states."""
        self._put(batch, hidden_NH.detach() if self._is_hidden else self._project(hidden_NH))

    def put_logits(self, batch: Batch, logits_NV: Tensor) -> None:
        """Store the distributions of these logits. Only with `must_be_logprobs`."""
        self._put(batch, logits_NV.detach().log_softmax(-1))

    def _put(self, batch: Batch, values: Tensor) -> None:
        for i in batch.samples:
            self._values[i] = values[batch.owners_N == i]

    def rows(self, samples: Sequence[int]) -> Tensor:
        """Return the kept values of these samples, one after another."""
        return torch.cat([self._values[i] for i in samples])

    def logprobs(self, rows: Tensor) -> Tensor:
        """Return the log-probabilities, axes [N, V], of values that came from `rows`."""
        return self._project(rows) if self._is_hidden else rows

    def _project(self, hidden_NH: Tensor) -> Tensor:
        with torch.no_grad():
            return self._model.logits(hidden_NH).log_softmax(-1)
