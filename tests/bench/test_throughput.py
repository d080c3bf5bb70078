"""The part throughput."""

from bench import throughput
from bench.config import BenchConfig
from evals.client import Client
from tests.evals.fake_heed import FakeHeed, serving


async def test_every_stream_has_an_adapter_of_its_own() -> None:
    """Three people are taught, then both kinds are timed in every round."""
    fake = FakeHeed()
    config = BenchConfig(streams=3, rounds=2, questions=2)
    async with serving(fake) as url, Client(url) as client:
        samples = await throughput.measure(config, client, "run", lambda _: None)
    assert {name: user.active for name, user in fake.users.items()} == {f"bench-run-stream-{n}": 1 for n in range(3)}
    assert {kind: len(rates) for kind, rates in samples.items()} == {"base": 2, "adapters": 2}
    assert all(rate > 0 for rates in samples.values() for rate in rates)
    assert len(fake.asked) == 3 + 2 * 2 * 3 * 2


def test_the_ratio_is_made_of_the_medians() -> None:
    """Within one run."""
    rows = throughput.rows({"base": [90.0, 100.0, 500.0], "adapters": [80.0, 70.0, 90.0]}, 16)
    assert [row.name.strip() for row in rows] == [
        "16 streams, base model",
        "16 streams, 16 adapters",
        "adapters / base",
    ]
    assert rows[2].median == 0.8
