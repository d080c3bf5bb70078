"""The people a benchmark talks as."""

from bench.people import person
from evals.client import Client
from tests.evals.fake_heed import FakeHeed, serving


async def test_a_person_can_be_taught_with_the_shipped_learning_settings() -> None:
    """No override travels with a correction."""
    fake = FakeHeed()
    async with serving(fake) as url, Client(url) as client:
        await client.correct(person(client, "ana").name, "cmpl-1", "leave the emojis out")
    assert fake.training == [None]
