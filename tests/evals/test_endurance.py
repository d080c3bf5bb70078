"""The part endurance."""

import pytest

from evals import cases, score
from evals.config import EvalConfig
from evals.endurance import units, wishes
from tests.evals.conftest import Measure
from tests.evals.fake_heed import FakeHeed

PREFERENCES = ("layout", "emoji", "question")
ARGUMENTS = {"only": ("endurance",), "preferences": PREFERENCES, "seeds": 1, "updates": 9}
EXERCISES = [e for seed in range(2) for e in cases.exercises(seed, 10, (), "endurance")]


def test_every_correction_turns_its_preference_over() -> None:
    """Away first, then back, then away again; the same seed tells the same."""
    told = wishes(1, PREFERENCES, 40)
    for preference in PREFERENCES:
        sides = [w.direction[1] for w in told if w.preference == preference]
        assert sides == [(i + 1) % 2 for i in range(len(sides))]
    assert told == wishes(1, PREFERENCES, 40)
    assert told != wishes(2, PREFERENCES, 40)


async def test_a_heed_that_keeps_the_latest_of_everything_is_right(measure: Measure) -> None:
    """Held, facts, no alert, skills and the other person: all as they should be."""
    fake = FakeHeed(skills={e.text: e.expected for e in EXERCISES})
    rows = score.figures(await measure(fake, **ARGUMENTS), ["endurance"])
    assert [row.median["weights"] for row in rows] == [1, 1, 0, 0, 0, 0]
    assert all(row.is_met(row.median) for row in rows[:5])


@pytest.mark.parametrize(("mind", "row", "value"), [("muddled", 1, 0), ("blank", 3, 100)])
async def test_what_is_lost_is_seen(measure: Measure, mind: str, row: int, value: float) -> None:
    """Facts, skills."""
    fake = FakeHeed(mind, {e.text: e.expected for e in EXERCISES})
    rows = score.figures(await measure(fake, **ARGUMENTS), ["endurance"])
    assert rows[row].median["weights"] == value
    assert rows[row].is_met(rows[row].median) is False


async def test_a_heed_that_never_takes_back_is_caught(measure: Measure) -> None:
    """A reversed preference that still holds is caught."""
    rows = score.figures(await measure(FakeHeed("stubborn"), **ARGUMENTS), ["endurance"])
    assert rows[0].median["weights"] < 1


def test_units_count_lessons() -> None:
    """As many as were asked for."""
    assert units(EvalConfig(seeds=2, updates=30)) == 60
