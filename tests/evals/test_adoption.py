"""The parts adoption and collateral."""

import pytest

from evals import score
from evals.adoption import units
from evals.config import EvalConfig
from tests.evals.conftest import Measure
from tests.evals.fake_heed import FakeHeed

ARGUMENTS = {"only": ("adoption", "collateral"), "preferences": ("layout", "name"), "seeds": 1}


@pytest.mark.parametrize(("mind", "expected"), [("perfect", 1.0), ("deaf", 0.0)])
async def test_adoption_is_the_share_of_probes_that_follow(measure: Measure, mind: str, expected: float) -> None:
    """A heed that learns everything has all of them, one that learns nothing none; notes follow either way."""
    records = await measure(FakeHeed(mind), **ARGUMENTS)
    row = score.figures(records, ["adoption"])[0]
    assert row.median == {"notes": 1.0, "weights": expected, "both": expected}


async def test_a_preference_lost_with_every_lesson_is_collateral(measure: Measure) -> None:
    """One of ten other preferences changes for one person, one of eleven for the other; the notes' arm loses none."""
    records = await measure(FakeHeed("sloppy"), **ARGUMENTS)
    changed, facts, either = score.figures(records, ["collateral"])
    assert changed.median["weights"] == pytest.approx((1 / 10 + 1 / 11) / 2)
    assert changed.median["notes"] == 0
    assert facts.median["weights"] == 0
    assert either.median["weights"] == 1


async def test_facts_that_go_with_a_lesson_are_collateral(measure: Measure) -> None:
    """Answers that follow the wish and are about something else have lost their facts."""
    records = await measure(FakeHeed("muddled"), **ARGUMENTS)
    assert score.figures(records, ["collateral"])[1].median["weights"] == 1


async def test_probes_come_after_the_lesson_and_never_from_before(measure: Measure) -> None:
    """A person with earlier messages asks them first; no probe is among what was said before the correction."""
    fake = FakeHeed()
    await measure(fake, **ARGUMENTS | {"histories": (4,), "preferences": ("layout",)})
    said = [text for user, text in fake.asked if user.endswith("-adoption-0-layout-4-t")]
    assert len(said) == 4 + 1 + 2 * 4
    assert not set(said[:5]) & set(said[5:])


def test_units_count_people() -> None:
    """One person per seed, preference and history."""
    assert units(EvalConfig(seeds=2, preferences=("units", "name"), histories=(0, 4))) == 8
