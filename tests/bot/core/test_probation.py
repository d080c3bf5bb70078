"""bot.core.probation: what is said about a version's first answers decides whether its lesson stays."""

import pytest

from bot.core.feedback import WORSE
from bot.core.probation import SAID_SO, why_worse
from engine.config import VersionConfig
from storage.kinds import FeedbackKind
from storage.tables import Feedback

ANSWERS = ("a", "b", "c")


def said(*signals: tuple[str, str]) -> list[Feedback]:
    """Feedback as (answer, "-1", "+1", WORSE or words)."""
    kinds = {"-1": FeedbackKind.REACTION, "+1": FeedbackKind.APPROVAL, WORSE: FeedbackKind.REACTION}
    return [
        Feedback(
            user_id="ana",
            completion_id=answer,
            kind=kinds.get(signal, FeedbackKind.CORRECTION),
            value=signal if signal in kinds else "",
        )
        for answer, signal in signals
    ]


@pytest.mark.parametrize(
    "signals",
    [
        [],
        [("a", "-1")],
        [("a", "-1"), ("a", "-1")],
        [("a", "-1"), ("b", "-1"), ("a", "too long")],
        [("a", "-1"), ("b", "-1"), ("b", "+1")],
        [("a", "+1"), ("b", "too long"), ("c", "no emoji")],
        [("a", "-1"), ("elsewhere", "-1"), ("elsewhere", WORSE)],
    ],
)
def test_the_lesson_stays(signals: list[tuple[str, str]]) -> None:
    """One answer disliked is one answer; a reason teaches; an approval outweighs; other answers say nothing."""
    assert why_worse(ANSWERS, said(*signals), VersionConfig()) == ""


@pytest.mark.parametrize(
    "signals",
    [
        [("a", "-1"), ("b", "-1")],
        [("a", "+1"), ("a", "-1"), ("c", "-1")],
        [("a", "too long"), ("a", "-1"), ("b", "-1")],
    ],
)
def test_two_disliked_answers_take_it_back(signals: list[tuple[str, str]]) -> None:
    """The newest word on each answer counts."""
    assert why_worse(ANSWERS, said(*signals), VersionConfig()) == "2 of its first answers were disliked"


def test_one_sentence_takes_it_back() -> None:
    """Whoever says so need not say it twice."""
    assert why_worse(ANSWERS, said(("b", WORSE)), VersionConfig()) == SAID_SO


def test_probation_ends() -> None:
    """Only the first answers count, and without any there is no probation."""
    given = said(("b", "-1"), ("c", "-1"), ("c", WORSE))
    assert why_worse(ANSWERS, given, VersionConfig(probation_answers=2)) == ""
    assert why_worse(ANSWERS, given, VersionConfig(probation_answers=0)) == ""
    config = VersionConfig(probation_answers=2, probation_complaints=1)
    assert why_worse(ANSWERS, given, config) == "1 of its first answers were disliked"
