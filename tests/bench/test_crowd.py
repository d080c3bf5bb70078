"""The part crowd."""

from bench import crowd
from bench.config import BenchConfig
from tests.evals.fake_heed import FakeHeed, serving


def test_the_rows_compare_the_percentiles() -> None:
    """The ratio is that of the 99th percentiles; the log's growth is judged, too."""
    found = crowd.rows({"quiet_ms": [10.0] * 100, "crowded_ms": [15.0] * 100, "log_mb": [0.2]})
    assert [(row.median, row.is_met) for row in found] == [(10.0, None), (15.0, None), (1.5, False), (0.2, True)]


async def test_people_ask_for_as_long_as_they_are_asked_to() -> None:
    """Each of the few people has at least one answer, and the time to its first event is what is returned."""
    fake = FakeHeed()
    async with serving(fake) as url:
        found = await crowd._asking(BenchConfig(questions=2), url, "before", 0.01)
    assert len(found) >= crowd.PEOPLE
    assert all(value > 0 for value in found)
