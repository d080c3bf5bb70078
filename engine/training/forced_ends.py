"""Ends that are put to answers: there the teacher is sure that the answer is over, though it would have gone on.

A small teacher goes round in circles and never ends its list. Its answer is cut before that (`engine.samples.lessons`),
and the student is to end there, too, which the teacher's own distribution would not tell it.
"""

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from engine.sample import Sample
from engine.training.batching import Batch

_DOUBT = 1e-3  # of probability, shared by all other tokens: a divergence without any would be infinite


class ForcedEnds:
    """The samples of an update whose last token is such an end."""

    def __init__(self, samples: Sequence[Sample]) -> None:
        """Find them among the samples of an update, in its numbering."""
        self._cut = {i for i, sample in enumerate(samples) if sample.is_cut}

    def put(self, teacher_NV: Tensor, batch: Batch, chunk: slice) -> Tensor:
        """Return the teacher's log-probabilities of a chunk of positions, sure at the ends put there. In place."""
        if self._cut.intersection(batch.samples):
            owners_N = batch.owners_N
            is_end_N = batch.is_last_N & torch.isin(owners_N, torch.tensor([*self._cut], device=owners_N.device))
            (ends,) = is_end_N[chunk].nonzero(as_tuple=True)
            teacher_NV[ends] = math.log(_DOUBT / max(1, teacher_NV.shape[-1] - 1))
            teacher_NV[ends, batch.token_ids_N[chunk][ends]] = math.log1p(-_DOUBT)
        return teacher_NV
