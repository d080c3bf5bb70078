"""The part notes."""

from evals.config import EvalConfig
from evals.notes import units
from tests.evals.conftest import Measure
from tests.evals.fake_heed import FakeHeed

ARGUMENTS = {"only": ("notes",), "preferences": ("units", "name"), "seeds": 1}


async def test_the_newest_note_wins_and_nothing_is_trained(measure: Measure) -> None:
    """A wish back to the default is told after a wish away from it."""
    fake = FakeHeed("deaf")
    records = await measure(fake, **ARGUMENTS)
    assert all(r["holds"] for r in records)
    assert {name.split("-")[5]: len(user.notes) for name, user in fake.users.items()} == {"0": 2, "1": 1}
    assert fake.training == []


async def test_every_answer_is_somebodys_very_first(measure: Measure) -> None:
    """As many people as answers, each with a phrasing drawn for them."""
    fake = FakeHeed()
    records = await measure(fake, **ARGUMENTS | {"probes": 20})
    assert len(records) == len(fake.asked) == len(fake.users) == 4 * 5
    assert len({r["wish"] for r in records}) > 8


def test_units_count_directions() -> None:
    """Two per preference and seed."""
    assert units(EvalConfig(seeds=2, preferences=("units",))) == 4
