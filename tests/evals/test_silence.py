"""The part silence."""

from evals import score
from evals.config import EvalConfig
from evals.silence import HALF_TURNS, QUIET_TURNS, REPLIES, units
from tests.evals.conftest import Measure
from tests.evals.fake_heed import FakeHeed

ARGUMENTS = {"only": ("silence",), "preferences": ("layout", "emoji", "question"), "seeds": 1}


async def test_a_heed_that_learns_from_corrections_alone(measure: Measure) -> None:
    """No update in the quiet turns, nothing changed, and half of the corrections were enough."""
    rows = score.figures(await measure(FakeHeed(), **ARGUMENTS), ["silence"])
    assert [row.median["weights"] for row in rows] == [0, 0, 0, 0, 1]


async def test_a_deaf_one_holds_nothing(measure: Measure) -> None:
    """The last figure falls where nothing is learned."""
    rows = score.figures(await measure(FakeHeed("deaf"), **ARGUMENTS), ["silence"])
    assert rows[4].median["weights"] == 0
    assert rows[4].is_met(rows[4].median) is False


async def test_a_heed_that_learns_from_thanks_is_seen(measure: Measure) -> None:
    """Each reply that asks for nothing starts an update, and answers change."""
    rows = score.figures(
        await measure(FakeHeed("sloppy"), **ARGUMENTS | {"preferences": ("layout", "units")}), ["silence"]
    )
    assert rows[2].median["weights"] == len(REPLIES)
    assert rows[2].is_met(rows[2].median) is False


async def test_the_quiet_turns_carry_no_feedback(measure: Measure) -> None:
    """As many questions as there are turns, some of them with a word of thanks behind the answer."""
    fake = FakeHeed()
    await measure(fake, **ARGUMENTS)
    quiet = [text for user, text in fake.asked if "quiet" in user]
    half = [text for user, text in fake.asked if "half" in user]
    assert len(quiet) > QUIET_TURNS + 10
    assert len(half) == HALF_TURNS + 4
    assert any("thanks" in text for text in quiet)
    assert len(fake.training) >= 4


def test_units_count_parts() -> None:
    """Two per seed."""
    assert units(EvalConfig(seeds=3)) == 6
