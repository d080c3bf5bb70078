"""Micro-batches: samples of similar length, padded to one width, and the pieces their vocabulary is projected in.

Owns the padding. Invariants: token ids are used exactly as given; a response token is predicted from the position
before it, so the last prompt token's row belongs to the response and the last response token's does not;
padding is on the right, where a causal model cannot see it.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from engine.config import LearnConfig
from engine.sample import Context, Sample
from engine.training.step_memory import CHUNK_ELEMENTS

Samples = Sequence[Sample] | Mapping[int, Sample]  # by their numbers
WIDTH_MULTIPLE = 8  # of a micro-batch's padded length: kernels are made for one shape each, and so shapes are kept few


@dataclass(frozen=True)
class Batch:
    """Right-padded sequences and their response positions. Axes: ids [B, L], everything else [N]."""

    samples: list[int]  # the samples' numbers, in the order of their rows
    input_ids_BL: Tensor
    rows_N: Tensor  # flat index into B * L of the position that predicts each response token
    token_ids_N: Tensor  # the response tokens
    owners_N: Tensor  # the sample each position belongs to

    @property
    def lengths(self) -> list[int]:
        """The number of positions of each sample."""
        return [int(n) for n in torch.unique_consecutive(self.owners_N, return_counts=True)[1]]

    @property
    def is_last_N(self) -> Tensor:
        """True at the last position of each sample."""
        owners_N = self.owners_N
        return torch.cat([owners_N[1:] != owners_N[:-1], owners_N.new_ones(1, dtype=torch.bool)])


def check_samples(samples: Sequence[Sample], learn: LearnConfig) -> None:
    """Raise ValueError if nothing would be trained or a sample is longer than `learn.max_sequence_tokens`."""
    if not any(s.weight > 0 and s.is_taught for s in samples):
        raise ValueError("an update needs a correction or counterfactual sample with a weight above 0")
    for sample in samples:
        if sample.num_tokens > learn.max_sequence_tokens:
            raise ValueError(
                f"a sample has {sample.num_tokens} tokens, more than max_sequence_tokens {learn.max_sequence_tokens}"
            )


def plan_batches(
    samples: Samples, indices: Iterable[int], context: Context, budget_tokens: int, device: torch.device
) -> list[Batch]:
    """Group samples of similar length; the padded size stays within `budget_tokens`, but one sample always fits."""
    lengths = {i: _padded(samples[i].length(context)) for i in indices}
    groups: list[list[int]] = []
    for i in sorted(lengths, key=lengths.__getitem__):
        if groups and (len(groups[-1]) + 1) * lengths[i] <= budget_tokens:
            groups[-1].append(i)
        else:
            groups.append([i])
    return [_make_batch(samples, group, context, device) for group in groups]


def row_chunks(num_rows: int, vocab_size: int, num_sides: int = 1) -> list[slice]:
    """Split response positions into pieces: the logits of one, for `num_sides` models, are CHUNK_ELEMENTS at most.

    A piece is never empty but for no positions at all, which are one piece.
    """
    size = max(1, CHUNK_ELEMENTS // (num_sides * vocab_size))
    return [slice(start, start + size) for start in range(0, max(1, num_rows), size)]


def _padded(length: int) -> int:
    return -(-length // WIDTH_MULTIPLE) * WIDTH_MULTIPLE


def _make_batch(samples: Samples, group: list[int], context: Context, device: torch.device) -> Batch:
    sequences = [samples[i].prompt(context) + samples[i].response_ids for i in group]
    width = _padded(max(map(len, sequences)))
    rows: list[int] = []
    for b, i in enumerate(group):
        first = b * width + len(samples[i].prompt(context)) - 1
        rows.extend(range(first, first + len(samples[i].response_ids)))
    padded = [ids + [0] * (width - len(ids)) for ids in sequences]
    tokens = [token for i in group for token in samples[i].response_ids]
    owners = [i for i in group for _ in samples[i].response_ids]
    return Batch(group, *(torch.tensor(values, device=device) for values in (padded, rows, tokens, owners)))
