"""One response to train on or to score, with the prompts that student and teacher see.

Imports no PyTorch: heed's process makes samples, the trainer in vLLM's worker takes them. Invariant: a sample crosses
the process border in one form only, that of `to_dict` and `from_dict`, and what is read there is checked.
"""

from dataclasses import dataclass
from typing import Any, Literal

from engine.config import LearnConfig, Teacher

Context = Literal["student", "teacher", "behaviour"]
Kind = Literal["correction", "counterfactual", "anchor", "earlier", "gold"]
_ALWAYS = ("kind", "student_ids", "teacher_ids", "response_ids")
_UNLESS_DEFAULT = {
    "behaviour_logprobs": None,
    "behaviour_ids": None,
    "weight": 1.0,
    "temperature": 1.0,
    "teacher": None,
}


@dataclass(frozen=True)
class Sample:
    """One response with its contexts. An "earlier" correction and a "gold" answer are measured, never trained on.

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

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> "Sample":
        """Return the checked sample of a record. Raise TypeError on unknown or missing fields, or as `check`."""
        sample = cls(**values)
        sample.check()
        return sample

    def to_dict(self) -> dict[str, Any]:
        """Return the sample as a record of plain values; optional fields that have their default are left out."""
        record = {name: getattr(self, name) for name in _ALWAYS}
        optional = {name: getattr(self, name) for name in _UNLESS_DEFAULT}
        return record | {name: value for name, value in optional.items() if value != _UNLESS_DEFAULT[name]}

    def check(self) -> None:
        """Raise ValueError for a sample without prompt or response, with unequal lengths, or with a negative weight."""
        if not (self.student_ids and self.teacher_ids and self.response_ids):
            raise ValueError(f"a {self.kind} sample needs a student prompt, a teacher prompt and a response")
        if self.behaviour_logprobs is not None and len(self.behaviour_logprobs) != len(self.response_ids):
            raise ValueError("behaviour_logprobs must have one value per response token")
        if self.weight < 0:
            raise ValueError(f"a sample's weight must not be negative, got {self.weight}")

    @property
    def is_anchor(self) -> bool:
        """True if the sample holds the student where it is."""
        return self.kind == "anchor"

    @property
    def is_held_out(self) -> bool:
        """True if the sample is only measured, before and after the update (`engine.gates.candidate`)."""
        return self.kind in ("earlier", "gold")

    @property
    def is_taught(self) -> bool:
        """True if the student is to change on this sample."""
        return not (self.is_anchor or self.is_held_out)

    @property
    def has_own_behaviour_prompt(self) -> bool:
        """True if the importance weight needs a forward pass of its own."""
        return self.behaviour_logprobs is not None and self.behaviour_ids not in (None, self.student_ids)

    def prompt(self, context: Context) -> list[int]:
        """Return the prompt of one of the contexts."""
        if context == "teacher":
            return self.teacher_ids
        return self.student_ids if context == "student" else (self.behaviour_ids or self.student_ids)

    def teacher_mode(self, learn: LearnConfig) -> Teacher:
        """Return the sample's own teacher, else the configured one if the sample is taught, else the plain base."""
        return self.teacher or (learn.teacher if self.is_taught else "base")

    def length(self, context: Context) -> int:
        """Return the tokens of prompt and response."""
        return len(self.prompt(context)) + len(self.response_ids)
