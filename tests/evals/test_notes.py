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
    assert {len(user.notes) for name, user in fake.users.items() if name.endswith("-0-n")} == {2}
    assert fake.training == []


def test_units_count_people() -> None:
    """One person per direction and seed."""
    assert units(EvalConfig(seeds=2, preferences=("units",))) == 4
