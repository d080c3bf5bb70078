"""What an update trains on, and how it is cut into micro-batches.

Owns the sample record and the padding. Invariants: token ids are used exactly as given; a response token is predicted
from the position before it, so the last prompt token's row belongs to the response and the last response token's does
not; padding is on the right, where a causal model cannot see it.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import Tensor

from engine.config import LearnConfig, Teacher

WIDTH_MULTIPLE = 8  # of a micro-batch's padded length: kernels are made for one shape each, and few shapes come again
Context = Literal["student", "teacher", "behaviour"]
Kind = Literal["correction", "counterfactual", "anchor", "earlier", "gold"]


@dataclass(frozen=True)
class Sample:
    """One response with its contexts. An "earlier" correction and a "gold" answer are looked at, never trained on.

    `behaviour_ids` is the prompt it was sampled with (None: the student's), `temperature` what it was sampled at; vLLM
    reports greedy tokens (temperature 0) with the log-probabilities of temperature 1.
    """

    kind: Kind
    student_ids: list[int]
    teacher_ids: list[int]
    response_ids: list[int]
    weight: float = 1.0
    behaviour_logprobs: list[float] | None = None
    behaviour_ids: list[int] | None = None
    temperature: float = 1.0
    teacher: Teacher | None = None

    def __post_init__(self) -> None:
        """Raises ValueError for a sample without prompt or response, or with unequal lengths."""
        if not (self.student_ids and self.teacher_ids and self.response_ids):
            raise ValueError(f"a {self.kind} sample needs a student prompt, a teacher prompt and a response")
        if self.behaviour_logprobs is not None and len(self.behaviour_logprobs) != len(self.response_ids):
            raise ValueError("behaviour_logprobs must have one value per response token")
        if self.weight < 0:
            raise ValueError(f"a sample's weight must not be negative, got {self.weight}")

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> "Sample":
        """A sample as it crosses into the worker. Raises TypeError on unknown or missing fields."""
        return cls(**values)

    @property
    def is_anchor(self) -> bool:
        """Whether the sample holds the student where it is."""
        return self.kind == "anchor"

    @property
    def is_watched(self) -> bool:
        """Whether the sample is only looked at, before and after (`engine.gates.candidate`)."""
        return self.kind in ("earlier", "gold")

    @property
    def is_taught(self) -> bool:
        """Whether the student is to change here."""
        return not (self.is_anchor or self.is_watched)

    @property
    def has_own_behaviour_prompt(self) -> bool:
        """Whether the importance weight needs a forward pass of its own."""
        return self.behaviour_logprobs is not None and self.behaviour_ids not in (None, self.student_ids)

    def prompt(self, context: Context) -> list[int]:
        """The prompt of one of the contexts."""
        if context == "teacher":
            return self.teacher_ids
        return self.student_ids if context == "student" else (self.behaviour_ids or self.student_ids)

    def teacher_mode(self, learn: LearnConfig) -> Teacher:
        """What is taught has the configured teacher, the rest the plain base, unless the sample says otherwise."""
        return self.teacher or (learn.teacher if self.is_taught else "base")

    def length(self, context: Context) -> int:
        """Tokens of prompt and response."""
        return len(self.prompt(context)) + len(self.response_ids)


@dataclass(frozen=True)
class Batch:
    """Right-padded sequences and their response positions. Axes: ids [B, L], everything else [N]."""

    samples: list[int]  # which samples, in the order of their rows
    input_ids_BL: Tensor
    rows_N: Tensor  # flat index into B * L of the position that predicts each response token
    token_ids_N: Tensor  # the response tokens
    owners_N: Tensor  # the sample each position belongs to


def check_samples(samples: Sequence[Sample], learn: LearnConfig) -> None:
    """Raises ValueError when nothing would be trained or a sample is longer than `learn.max_sequence_tokens`."""
    if not any(s.weight > 0 and s.is_taught for s in samples):
        raise ValueError("an update needs a correction or counterfactual sample with a weight above 0")
    for sample in samples:
        longest = max(sample.length(context) for context in ("student", "teacher", "behaviour"))
        if longest > learn.max_sequence_tokens:
            raise ValueError(
                f"a sample has {longest} tokens, more than max_sequence_tokens {learn.max_sequence_tokens}"
            )


def plan_batches(
    samples: Sequence[Sample], indices: Iterable[int], context: Context, budget_tokens: int, device: torch.device
) -> list[Batch]:
    """Groups samples of similar length; padded size stays within `budget_tokens`, but one sample always fits."""
    lengths = {i: _padded(samples[i].length(context)) for i in indices}
    groups: list[list[int]] = []
    for i in sorted(lengths, key=lengths.__getitem__):
        if groups and (len(groups[-1]) + 1) * lengths[i] <= budget_tokens:
            groups[-1].append(i)
        else:
            groups.append([i])
    return [_make_batch(samples, group, context, device) for group in groups]


def _padded(length: int) -> int:
    return -(-length // WIDTH_MULTIPLE) * WIDTH_MULTIPLE


def _make_batch(samples: Sequence[Sample], group: list[int], context: Context, device: torch.device) -> Batch:
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
