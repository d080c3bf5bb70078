"""Micro-batches: samples of similar length, padded to one width, and the pieces their vocabulary is projected in.

Owns the padding. Invariants: token ids are used exactly as given; a response token is predicted from the position
before it, so the last prompt token's row belongs to the response and the last response token's does not;
padding is on the right, where a causal model cannot see it.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from engine.config import LearnConfig
from engine.sample import Context, Sample
from engine.training.step_memory import CHUNK_ELEMENTS

Samples = Sequence[Sample] | Mapping[int, Sample]  # by their numbers
WORTH_SHARING = 64  # tokens: sequences that begin with as many in common are computed as one row
_MOST_PADDED = 4  # times the budget: some models compute padded rows after all, and attention does in every one
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

    @property
    def alone(self) -> "list[Batch]":
        """Each sequence as a batch of its own, in the same order."""
        width, lengths = self.input_ids_BL.shape[1], self.lengths
        sides = (side.split(lengths) for side in (self.rows_N % width, self.token_ids_N, self.owners_N))
        parts = zip(self.samples, self.input_ids_BL.split(1), *sides, strict=True)
        return [Batch([sample], *tensors) for sample, *tensors in parts]


class _Part(NamedTuple):
    """Samples of a micro-batch that begin alike: the padded length of the longest, and how much they share."""

    indices: list[int]
    length: int
    shared: int

    @property
    def own(self) -> int:
        """Padded tokens that are computed, but for a beginning that several have."""
        count = len(self.indices)
        return count * (self.length - self.shared) if count > 1 else self.length


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
    """Group samples of similar length; the padded size stays within `budget_tokens`, but one sample always fits.

    Samples that begin with WORTH_SHARING tokens in common or more stand together, for these may be computed once
    (`engine.training.packing`): that beginning does not count, within `_MOST_PADDED` budgets of padded tokens. Where
    there is room, others stand before them in the same micro-batch.
    Raises ValueError on an empty prompt.
    """
    groups: list[list[_Part]] = []
    for family in _families(samples, indices, context):
        first, *others = _parts(samples, family, context, budget_tokens)
        if groups and _is_within(budget_tokens, [*groups[-1], first]):
            groups[-1].append(first)
        else:
            groups.append([first])
        groups += [[part] for part in others]
    return [_make_batch(samples, [i for part in parts for i in part.indices], context, device) for parts in groups]


def _families(samples: Samples, indices: Iterable[int], context: Context) -> list[list[int]]:
    """Return the samples that begin like others by that beginning, behind all the rest."""
    beginnings: dict[tuple[int, ...], list[int]] = {}
    for i in indices:
        beginnings.setdefault(tuple(samples[i].prompt(context)[:WORTH_SHARING]), []).append(i)
    shared = [found for start, found in beginnings.items() if len(found) > 1 and len(start) == WORTH_SHARING]
    alone = [i for found in beginnings.values() if found not in shared for i in found]
    return [family for family in (alone, *shared) if family]


def _parts(samples: Samples, family: list[int], context: Context, budget_tokens: int) -> list[_Part]:
    """Cut a family into parts of similar length that fit."""
    shared = _num_common([samples[i].prompt(context) for i in family])
    shared = shared if shared >= WORTH_SHARING else 0
    parts: list[_Part] = []
    for length, i in sorted((_padded(samples[i].length(context)), i) for i in family):
        grown = _Part([*parts[-1].indices, i], length, shared) if parts else None
        if grown and _is_within(budget_tokens, [grown]):
            parts[-1] = grown
        else:
            parts.append(_Part([i], length, shared))
    return parts


def _is_within(budget_tokens: int, parts: Sequence[_Part]) -> bool:
    """Return True if these may be one micro-batch."""
    padded = max(part.length for part in parts) * sum(len(part.indices) for part in parts)
    return sum(part.own for part in parts) <= budget_tokens and padded <= _MOST_PADDED * budget_tokens


def _num_common(prompts: Sequence[list[int]]) -> int:
    """Return how many tokens all prompts begin with."""
    first, last = min(prompts, default=[]), max(prompts, default=[])
    return next((k for k, (a, b) in enumerate(zip(first, last, strict=False)) if a != b), min(len(first), len(last)))


def row_chunks(num_rows: int, vocab_size: int, num_sides: int = 1) -> list[slice]:
    """Split response positions into pieces: the logits of one, for `num_sides` models, are CHUNK_ELEMENTS at most.

    A piece is never empty but for no positions at all, which are one piece.
    """
    size = max(1, CHUNK_ELEMENTS // (num_sides * vocab_size))
    return [slice(start, start + size) for start in range(0, max(1, num_rows), size)]


def _padded(length: int) -> int:
    return -(-length // WIDTH_MULTIPLE) * WIDTH_MULTIPLE


def _make_batch(samples: Samples, group: list[int], context: Context, device: torch.device) -> Batch:
    if not all(samples[i].prompt(context) for i in group):
        raise ValueError("an answer's first token is predicted from a prompt, and this one is empty")
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
