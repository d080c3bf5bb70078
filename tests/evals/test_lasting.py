"""The part lasting."""

import pytest

from evals import score
from evals.config import EvalConfig
from evals.lasting import units
from tests.evals.conftest import Measure
from tests.evals.fake_heed import FakeHeed

ARGUMENTS = {"only": ("lasting",), "preferences": ("layout", "name", "question"), "seeds": 1, "between": 4}


@pytest.mark.parametrize(("mind", "held", "together"), [("perfect", 1, 1), ("newest", 0.333, 0), ("deaf", 0, 0)])
async def test_what_holds_in_the_end(measure: Measure, mind: str, held: float, together: float) -> None:
    """Every lesson, the last of three only, none."""
    rows = score.figures(await measure(FakeHeed(mind), **ARGUMENTS), ["lasting"])
    assert [round(row.median["weights"], 3) for row in rows[:2]] == [held, together]


@pytest.mark.parametrize(("settles", "saved"), [(True, 1.0), (False, 0.0)])
async def test_the_tokens_saved_are_those_of_learned_notes(measure: Measure, settles: bool, saved: float) -> None:
    """All where every note is in the weights, none where none is."""
    fake = FakeHeed(settles=settles)
    rows = score.figures(await measure(fake, **ARGUMENTS | {"settle_s": 1}), ["lasting"])
    assert rows[-1].median["both"] == saved


async def test_four_chats_lie_between_two_lessons(measure: Measure) -> None:
    """They are the trained person's own, and none of them is a probe."""
    fake = FakeHeed()
    records = await measure(fake, **ARGUMENTS)
    said = [text for user, text in fake.asked if user.endswith("-t")]
    probed = {r["question"] for r in records if r["part"] == "lasting" and "arm" in r}
    assert len([text for text in said if text not in probed]) == 3 * (1 + 4)
    assert not probed & set(said[:15])


def test_units_count_lessons() -> None:
    """One per preference and seed."""
    assert units(EvalConfig(seeds=2)) == 24
