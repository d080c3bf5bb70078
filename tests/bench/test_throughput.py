"""The part throughput."""

from bench import throughput
from bench.config import BenchConfig
from evals.client import Client
from tests.evals.fake_heed import FakeHeed, serving


async def test_every_stream_has_an_adapter_of_its_own() -> None:
    """One of three people is taught, the others are given it, then both kinds are timed in every round."""
    fake = FakeHeed()
    config = BenchConfig(streams=3, rounds=2, questions=2)
    async with serving(fake) as url, Client(url) as client:
        samples = await throughput.measure(config, client, "run", lambda _: None)
    assert {name: user.active for name, user in fake.users.items()} == {f"bench-run-stream-{n}": 1 for n in range(3)}
    assert {kind: len(samples[kind]) for kind in throughput.MODELS} == {"base": 2, "adapters": 2}
    assert all(rate > 0 for kind in throughput.MODELS for rate in samples[kind])
    assert len(fake.asked) == 1 + (1 + 2 * 2) * 3 * 2


async def test_the_base_model_answers_no_longer_than_the_adapters() -> None:
    """Each question has the limit that its answer by the person's adapter had."""
    fake = FakeHeed()
    config = BenchConfig(streams=2, rounds=1, questions=2)
    async with serving(fake) as url, Client(url) as client:
        samples = await throughput.measure(config, client, "run", lambda _: None)
    timed = fake.bodies[-2 * 2 * 2 :]
    for user, limits in samples["limits"].items():
        for model in throughput.MODELS.values():
            asked = [body["max_tokens"] for body in timed if (body["user"], body["model"]) == (user, model)]
            assert asked == limits


def test_the_ratio_is_made_of_the_medians() -> None:
    """Within one run."""
    rates = {"base": [90.0, 100.0, 500.0], "adapters": [80.0, 70.0, 90.0]}
    rows = throughput.rows({"streams": 16, "target": 1 / 0.7, "limits": {"one": [20, 40]}, **rates})
    assert [row.name.strip() for row in rows] == [
        "most tokens of an answer",
        "16 streams, base model",
        "16 streams, 16 adapters",
        "adapters / base",
        "time of a token, adapters / base",
    ]
    assert (rows[3].median, rows[4].median) == (0.8, 1.25)
    assert rows[4].is_met


async def test_a_real_model_is_asked_for_more() -> None:
    """Nine tenths of the throughput without adapters, for the pocket model's seven."""
    targets = []
    for model in ("pocket", "smollm2"):
        async with serving(FakeHeed()) as url, Client(url) as client:
            config = BenchConfig(streams=2, rounds=1, questions=1, model=model)
            targets.append((await throughput.measure(config, client, "run", lambda _: None))["target"])
    assert targets == [1 / 0.7, 1 / 0.9]
