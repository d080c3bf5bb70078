"""The part reversal."""

from evals import score
from evals.config import EvalConfig
from evals.reversal import units
from tests.evals.conftest import Measure
from tests.evals.fake_heed import FakeHeed

ARGUMENTS = {"only": ("reversal",), "preferences": ("layout", "name"), "seeds": 1}


async def test_a_lesson_taken_back_is_back(measure: Measure) -> None:
    """The first correction had worked in every arm, and the second undid it."""
    first, back = score.figures(await measure(FakeHeed(), **ARGUMENTS), ["reversal"])
    assert dict(first.median) == dict(back.median) == {"notes": 1.0, "weights": 1.0, "both": 1.0}


async def test_a_heed_that_never_goes_back_is_found_out(measure: Measure) -> None:
    """The first had worked and still does: nothing is back."""
    first, back = score.figures(await measure(FakeHeed("stubborn"), **ARGUMENTS), ["reversal"])
    assert (first.median["weights"], back.median["weights"]) == (1.0, 0.0)


async def test_a_first_correction_without_effect_proves_nothing(measure: Measure) -> None:
    """If there was nothing to reverse, the target is not reached, though every answer is as by default."""
    first, back = score.figures(await measure(FakeHeed("deaf"), **ARGUMENTS), ["reversal"])
    assert first.median["weights"] == 0
    assert "weights" not in back.median
    assert back.is_met(back.median) is False


def test_units_count_people() -> None:
    """One person per seed and preference."""
    assert units(EvalConfig(seeds=2, preferences=("units", "name"))) == 4
