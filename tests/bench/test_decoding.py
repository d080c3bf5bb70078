"""The part decoding."""

import pytest

from bench import decoding
from bench.config import BenchConfig
from evals.client import Client
from evals.errors import MeasurementFailed
from tests.evals.fake_heed import FakeHeed, serving


async def test_every_answer_is_as_long_and_none_ends() -> None:
    """Both kinds are asked the same in every round, with the end of the turn forbidden; the first is not counted."""
    fake = FakeHeed()
    config = BenchConfig(streams=3, rounds=2)
    async with serving(fake) as url, Client(url) as client:
        samples = await decoding.measure(config, client, "run", lambda _: None)
    assert {kind: len(samples[kind]) for kind in decoding.MODELS} == {"base": 2, "adapters": 2}
    assert {user.active for user in fake.users.values()} == {1}
    timed = fake.bodies[-3 * 2 * 3 :]
    assert {(body["max_tokens"], *body["logit_bias"].items()) for body in timed} == {(128, ("7", -100))}
    models = [body["model"] for body in timed]
    assert [models.count(model) for model in decoding.MODELS.values()] == [9, 9]


async def test_a_model_whose_answers_do_not_end_cannot_be_measured() -> None:
    """Its end is not known."""
    fake = FakeHeed()
    fake.finish_reason = "length"
    async with serving(fake) as url, Client(url) as client:
        with pytest.raises(MeasurementFailed, match="last token"):
            await decoding.measure(BenchConfig(streams=2, rounds=1), client, "run", lambda _: None)


def test_the_ratio_is_made_of_the_medians() -> None:
    """Within one run."""
    rates = {"base": [90.0, 100.0, 500.0], "adapters": [80.0, 70.0, 90.0]}
    rows = decoding.rows({"streams": 16, "target": 1 / 0.7, **rates})
    assert [row.name.strip() for row in rows] == [
        "decoding 128 tokens, 16 streams, base model",
        "decoding 128 tokens, 16 streams, 16 adapters",
        "decoding, adapters / base",
        "decoding, time of a token, adapters / base",
    ]
    assert (rows[2].median, rows[3].median) == (0.8, 1.25)
    assert rows[3].is_met
