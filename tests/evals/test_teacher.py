"""The part teacher."""

from evals.config import EvalConfig
from evals.teacher import per_direction, units
from tests.evals.conftest import Measure
from tests.evals.fake_heed import FakeHeed

ARGUMENTS = {"only": ("teacher",), "preferences": ("emoji", "name")}


async def test_a_model_that_understands_holds_everything_it_is_told(measure: Measure) -> None:
    """Both directions, both ways of telling, and nothing is taught."""
    fake = FakeHeed()
    records = await measure(fake, **ARGUMENTS)
    assert {(r["way"], r["preference"], r["side"]) for r in records} == {
        (way, preference, side)
        for way in ("next turn", "hindsight")
        for preference in ("emoji", "name")
        for side in (0, 1)
    }
    assert all(r["holds"] for r in records)
    assert fake.training == []


async def test_a_model_that_does_not_listen_is_found_out(measure: Measure) -> None:
    """Wishes away from the default are not followed by a model that never reads them."""
    records = await measure(FakeHeed("deaf"), **ARGUMENTS)
    assert not any(r["holds"] for r in records if r["side"] == 1)


def test_the_parts_size_follows_the_arguments() -> None:
    """A quarter of the probes per direction, at least one."""
    assert [per_direction(EvalConfig(probes=n)) for n in (1, 20)] == [1, 5]
    assert units(EvalConfig(seeds=3)) == 6
