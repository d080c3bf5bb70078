"""The parts retention and skills."""

import pytest

from evals import cases, score
from evals.config import EvalConfig
from evals.retention import units
from tests.evals.conftest import Measure
from tests.evals.fake_heed import FakeHeed

PREFERENCES = ("layout", "name", "question")
ARGUMENTS = {"only": ("retention",), "preferences": PREFERENCES, "seeds": 1}
EXERCISES = [e for seed in range(2) for e in cases.exercises(seed, 10, (), 0)]


async def test_everything_held_is_held(measure: Measure) -> None:
    """A heed that keeps every lesson holds all of them, also together in one answer."""
    rows = score.figures(await measure(FakeHeed(), **ARGUMENTS), ["retention"])
    assert [row.median["weights"] for row in rows] == [1, 1, 1, 1, 0, 0]


async def test_only_the_newest_held_is_a_third_of_three(measure: Measure) -> None:
    """Each lesson was adopted when it was new, and the earlier ones are gone at the end."""
    rows = score.figures(await measure(FakeHeed("newest"), **ARGUMENTS), ["retention"])
    assert [round(row.median["weights"], 3) for row in rows[:4]] == [1, 0.333, 0, 0]
    assert rows[1].median["notes"] == 1


async def test_no_probe_is_asked_before_the_last_lesson(measure: Measure) -> None:
    """The trained person's first questions are the corrected ones, one per lesson, about other subjects."""
    fake = FakeHeed()
    records = await measure(fake, **ARGUMENTS)
    said = [text for user, text in fake.asked if user.endswith("-t")]
    probed = {r["question"] for r in records if r["part"] == "retention" and "arm" in r}
    assert not probed & set(said[: len(PREFERENCES)])
    assert probed == set(said[len(PREFERENCES) :])


@pytest.mark.parametrize(("mind", "lost"), [("perfect", 0), ("blank", 100)])
async def test_skills_are_asked_before_and_after_in_every_arm(measure: Measure, mind: str, lost: int) -> None:
    """Skills that only an untaught heed has are lost by all the points it had."""
    fake = FakeHeed(mind, {e.text: e.expected for e in EXERCISES})
    records = await measure(fake, **ARGUMENTS | {"only": ("skills",)})
    right, all_lost, absent_lost = score.figures(records, ["skills"])
    assert right.median["base"] == 1
    assert all_lost.median == absent_lost.median == {"notes": lost, "weights": lost, "both": lost}
    assert {r["skill"] for r in records if "skill" in r} == {"add", "repeat", "opposite", "next", "bigger"}


def test_units_count_lessons() -> None:
    """Twelve lessons by two people per seed; fewer preferences are one person."""
    assert units(EvalConfig(seeds=2)) == 24
    assert units(EvalConfig(seeds=2, preferences=PREFERENCES)) == 6
