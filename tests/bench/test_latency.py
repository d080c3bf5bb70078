"""The part latency."""

from bench import latency
from bench.config import BenchConfig
from evals.client import Client
from tests.evals.fake_heed import FakeHeed, serving


async def test_every_correction_is_timed_and_seen_serving() -> None:
    """Five corrections by two people, each with heed's own phases."""
    fake = FakeHeed()
    async with serving(fake) as url, Client(url) as client:
        samples = await latency.measure(BenchConfig(updates=5), client, "run", lambda _: None)
    assert len(samples) == latency.units(BenchConfig(updates=5)) == 5
    assert all(s["is_served"] and s["status"] == "learned" and s["seconds"] > 0 for s in samples)
    assert [fake.user(f"bench-run-latency-{n}").active for n in (0, 1)] == [4, 1]


def sample(seconds: float, status: str = "learned", is_served: bool = True) -> dict[str, object]:
    """One timed correction."""
    update = {"phases_ms": {"train": seconds * 900, "publish": 10.0}}
    return {"status": status, "is_served": is_served, "seconds": seconds, "settle_s": 0.5, "update": update}


def test_rows_are_the_whole_its_phases_and_what_follows() -> None:
    """Judged by the median; corrections that taught nothing are no update."""
    rows = latency.rows([sample(1.0), sample(1.2), sample(0.1, status="kept"), sample(9.0, is_served=False)])
    assert [row.name.strip() for row in rows] == [
        "correction sent to new adapter serving",
        "phase train",
        "phase publish",
        "afterwards: probes and rollouts for the next",
    ]
    assert (rows[0].median, rows[0].is_met) == (1.1, True)


def test_without_an_update_there_are_no_rows() -> None:
    """A table does not invent figures."""
    assert latency.rows([sample(0.1, status="kept")]) == []
