"""Grades of answers: approved, in need of improvement, or ambiguous, from feedback and from gate scores.

Pure; after mnemonic's classification. Notation: y is the answer, N the standing notes, p the base model.

    EPR     share of an approved answer's entities that y keeps, if the question was the same (`engine.gates.texts`)
    gain    log p(y | N) - log p(y | nothing), in nats per answer: below zero y is what a person without the notes says

Gold: approved, of sound form, EPR above gold_preserved, gain not below -min_gain. In need of improvement: corrected or
disliked, or, unless approved, of no sound form, EPR below poor_preserved, or gain below -min_gain. Everything else is
ambiguous: no one said anything, or a person and a gate disagree. Invariant: silence alone never makes gold.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from engine.config import BetterAnswersConfig


class Grade(StrEnum):
    """The worth of an answer to learn from."""

    GOLD = "gold"
    NEEDS_IMPROVEMENT = "needs improvement"
    AMBIGUOUS = "ambiguous"


@dataclass(frozen=True)
class Evidence:
    """The evidence about one answer; a field is None if it was not measured."""

    completion_id: str
    is_approved: bool = False
    is_disliked: bool = False  # a thumb down without words
    is_corrected: bool = False  # words that say what was wrong, or the whole answer written anew
    is_sound: bool = True
    preserved: float | None = None  # EPR
    gain: float | None = None  # nats


def grade(e: Evidence, config: BetterAnswersConfig) -> Grade:
    """Return the grade of an answer by the rules of the module head."""
    if e.is_corrected or e.is_disliked:
        return Grade.NEEDS_IMPROVEMENT
    if is_poor(e, config):
        return Grade.AMBIGUOUS if e.is_approved else Grade.NEEDS_IMPROVEMENT
    is_whole = e.preserved is None or e.preserved > config.gold_preserved
    return Grade.GOLD if e.is_approved and is_whole else Grade.AMBIGUOUS


def is_poor(e: Evidence, config: BetterAnswersConfig) -> bool:
    """Return True if a gate score speaks against the answer."""
    has_lost = e.preserved is not None and e.preserved < config.poor_preserved
    is_against = e.gain is not None and e.gain < -config.min_gain
    return not e.is_sound or has_lost or is_against


def worst_first(evidence: Sequence[Evidence], config: BetterAnswersConfig) -> list[Evidence]:
    """Return the answers that need improvement and have no correction: disliked first, then by EPR, then by gain."""
    poor = [e for e in evidence if not e.is_corrected and grade(e, config) == Grade.NEEDS_IMPROVEMENT]
    return sorted(poor, key=lambda e: (not e.is_disliked, 1.0 if e.preserved is None else e.preserved, e.gain or 0.0))
