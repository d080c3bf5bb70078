"""The records that cross between heed's process and the trainer: samples and their scores.

Imports neither torch nor vLLM, so that both processes build the same records; they are serialised at the call into the
worker and nowhere else.
"""

from dataclasses import dataclass, fields, replace
from typing import Any, Literal

from engine.config import LearnConfig, Teacher

Context = Literal["student", "teacher", "plain", "behaviour"]
Kind = Literal["correction", "counterfactual", "opening", "anchor", "earlier", "gold"]
_RECORD_ORDER = (  # of the fields in kept batches
    "kind", "student_ids", "teacher_ids", "response_ids", "behaviour_logprobs", "behaviour_ids",
    "weight", "temperature", "teacher", "is_cut", "plain_ids",
)  # fmt: skip


@dataclass(frozen=True)
class Sample:
    """One response with its contexts. An "earlier" correction and a "gold" answer are measured, never trained on.

    An "opening" is the beginning of an answer: trained on, and no answer to a figure of whole ones. Where an answer
    `is_cut`, its last token ends it, as its teacher would not have (`engine.training.forced_ends`).

    `behaviour_ids` is the prompt it was sampled with (None: the student's), `temperature` what it was sampled at; vLLM
    reports greedy tokens (temperature 0) with the log-probabilities of temperature 1. `plain_ids` is the prompt that a
    guided teacher is compared with (None: the student's).
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
    is_cut: bool = False
    plain_ids: list[int] | None = None

    def check(self) -> None:
        """Raise ValueError for a sample without prompt or response, with unequal lengths or a negative weight."""
        if not (self.student_ids and self.teacher_ids and self.response_ids):
            raise ValueError(f"a {self.kind} sample needs a student prompt, a teacher prompt and a response")
        if self.behaviour_logprobs is not None and len(self.behaviour_logprobs) != len(self.response_ids):
            raise ValueError("behaviour_logprobs must have one value per response token")
        if self.weight < 0:
            raise ValueError(f"a sample's weight must not be negative, got {self.weight}")

    def to_dict(self) -> dict[str, Any]:
        """Return the fields that are not at their default, as they cross into the worker and onto the disk."""
        defaults = {entry.name: entry.default for entry in fields(self)}
        values = {name: getattr(self, name) for name in _RECORD_ORDER}
        return {name: value for name, value in values.items() if value != defaults[name]}

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> "Sample":
        """Return the checked sample of `to_dict`. Raises TypeError on unknown fields, ValueError as `check`."""
        sample = cls(**values)
        sample.check()
        return sample

    @property
    def is_anchor(self) -> bool:
        """Return True if the sample holds the student where it is."""
        return self.kind == "anchor"

    @property
    def is_held_out(self) -> bool:
        """True if the sample is only measured, before and after the update (`engine.gates.candidate`)."""
        return self.kind in ("earlier", "gold")

    @property
    def is_taught(self) -> bool:
        """Return True if the student is to change here."""
        return not (self.is_anchor or self.is_held_out)

    @property
    def uncut(self) -> "Sample":
        """The sample as its teacher said it, without the end that was put there."""
        return replace(self, response_ids=self.response_ids[:-1], is_cut=False) if self.is_cut else self

    @property
    def has_own_behaviour_prompt(self) -> bool:
        """Return True if the importance weight needs a forward pass of its own."""
        return self.behaviour_logprobs is not None and self.behaviour_ids not in (None, self.student_ids)

    def prompt(self, context: Context) -> list[int]:
        """Return the prompt of one of the contexts."""
        own = {"teacher": self.teacher_ids, "plain": self.plain_ids, "behaviour": self.behaviour_ids}
        return own.get(context) or self.student_ids

    def teacher_mode(self, learn: LearnConfig) -> Teacher:
        """Return the sample's own teacher, else the configured one if it is taught, else the plain base."""
        return self.teacher or (learn.teacher if self.is_taught else "base")

    def length(self, context: Context) -> int:
        """Return the tokens of prompt and response."""
        return len(self.prompt(context)) + len(self.response_ids)

    @property
    def num_tokens(self) -> int:
        """Tokens of the longest of its contexts with the response."""
        return max(self.length(context) for context in ("student", "teacher", "plain", "behaviour"))


@dataclass(frozen=True)
class Score:
    """One response under a student and a teacher context; everything in nats."""

    student_logprobs: list[float]  # of each response token
    teacher_logprobs: list[float]
    student_entropy: float  # per token
    teacher_entropy: float
    divergence: float  # KL(teacher || student) per token
    preferred_logprobs: list[float]  # the student's, of the tokens the teacher likes best
    is_preferred: list[bool]  # per token: the response has that token

    @property
    def gain(self) -> float:
        """log p(response | teacher context) - log p(response | student context), in nats per response."""
        return sum(self.teacher_logprobs) - sum(self.student_logprobs)


@dataclass(frozen=True)
class Passage:
    """A text as tokens, and the span of them that counts."""

    token_ids: list[int]
    first: int
    end: int  # behind the last token of the span

    def __post_init__(self) -> None:
        """Raise ValueError if the span is empty or lies outside."""
        if not 0 <= self.first < self.end <= len(self.token_ids):
            raise ValueError(f"the span {self.first}:{self.end} is empty or not within {len(self.token_ids)} tokens")
