"""The part http."""

from bench import http
from bench.config import BenchConfig
from evals.client import Client
from tests.evals.fake_heed import FakeHeed, serving


async def test_every_answer_is_timed_against_the_engine() -> None:
    """Three people, four questions each: what was seen, and what the engine said of the same answer."""
    fake = FakeHeed()
    told: list[str] = []
    config = BenchConfig(readers=3, questions=4)
    async with serving(fake) as url, Client(url) as client:
        samples = await http.measure(config, client, "run", told.append)
    assert {name: len(found) for name, found in samples.items()} == {"streams": 12, "at once": 3}
    everything = [*samples["streams"], *samples["at once"]]
    assert {sample["engine_ms"] for sample in everything} == {1.0}
    assert all(sample["seen_ms"] > 0 for sample in everything)
    assert {user for user, _ in fake.asked} == {f"bench-run-http-{n}" for n in range(3)}
    assert told == ["http"] * http.units(config)


def test_what_is_added_is_judged_by_its_99th_percentile() -> None:
    """The difference within each answer, not that of the percentiles; what asking at once costs is told, not judged."""
    samples = [{"seen_ms": 100.0 + n, "engine_ms": 90.0 + n} for n in range(90)]
    slow = [{"seen_ms": 60.0, "engine_ms": 20.0}] * 10
    fast = http.rows({"streams": samples, "at once": slow})
    assert [row.is_met for row in fast] == [None, None, None, True, None]
    assert [row.is_met for row in http.rows({"streams": samples + slow, "at once": slow})][3] is False
    assert (fast[2].median, fast[4].median) == (10.0, 40.0)
