"""Tests of the grades: approved, in need of improvement, ambiguous."""

from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.config import BetterAnswersConfig
from engine.consolidation.grades import Evidence, Grade, grade, worst_first

CONFIG = BetterAnswersConfig()
evidence = st.builds(
    Evidence,
    st.uuids().map(str),
    is_approved=st.booleans(),
    is_disliked=st.booleans(),
    is_corrected=st.booleans(),
    is_sound=st.booleans(),
    preserved=st.none() | st.floats(0, 1),
    gain=st.none() | st.floats(-50, 50),
)


@pytest.mark.parametrize(
    ("fields", "wanted"),
    [
        ({}, Grade.AMBIGUOUS),
        ({"is_approved": True}, Grade.GOLD),
        ({"is_approved": True, "gain": 3.0, "preserved": 0.95}, Grade.GOLD),
        ({"is_approved": True, "gain": -3.0}, Grade.AMBIGUOUS),
        ({"is_approved": True, "preserved": 0.8}, Grade.AMBIGUOUS),
        ({"is_approved": True, "is_sound": False}, Grade.AMBIGUOUS),
        ({"gain": -0.4}, Grade.AMBIGUOUS),
        ({"gain": -0.6}, Grade.NEEDS_IMPROVEMENT),
        ({"preserved": 0.69}, Grade.NEEDS_IMPROVEMENT),
        ({"preserved": 0.7}, Grade.AMBIGUOUS),
        ({"is_sound": False}, Grade.NEEDS_IMPROVEMENT),
        ({"is_disliked": True, "gain": 3.0}, Grade.NEEDS_IMPROVEMENT),
        ({"is_corrected": True, "is_approved": True}, Grade.NEEDS_IMPROVEMENT),
    ],
)
def test_an_answer_is_graded_by_what_is_known_of_it(fields: dict[str, Any], wanted: Grade) -> None:
    """A person's feedback comes first, then the gate scores with mnemonic's bounds of .9 and .7."""
    assert grade(Evidence("cmpl-1", **fields), CONFIG) == wanted


@given(evidence)
def test_silence_never_makes_gold(e: Evidence) -> None:
    """No disliked or corrected answer is approved either."""
    if grade(e, CONFIG) == Grade.GOLD:
        assert e.is_approved
        assert not e.is_disliked
        assert not e.is_corrected


@given(st.lists(evidence, max_size=12))
def test_the_worst_come_first_and_nothing_corrected_among_them(many: list[Evidence]) -> None:
    """Disliked answers come first, then by lost facts, then by how far they go against the notes."""
    worst = worst_first(many, CONFIG)
    assert {e.completion_id for e in worst} <= {e.completion_id for e in many if not e.is_corrected}
    assert all(grade(e, CONFIG) == Grade.NEEDS_IMPROVEMENT for e in worst)
    disliked = [e.is_disliked for e in worst]
    assert disliked == sorted(disliked, reverse=True)
    for first, second in pairwise(worst):
        if first.is_disliked == second.is_disliked and first.preserved is None and second.preserved is None:
            assert (first.gain or 0) <= (second.gain or 0)
