"""The people a benchmark talks as."""

from bench.people import person, wish_in_turn
from engine.pocket.style import PREFERENCES
from evals.client import Client
from tests.evals.fake_heed import FakeHeed, serving


async def test_a_person_can_be_taught_with_the_shipped_learning_settings() -> None:
    """No override travels with a correction."""
    fake = FakeHeed()
    async with serving(fake) as url, Client(url) as client:
        await client.correct(person(client, "ana").name, "cmpl-1", "leave the emojis out")
    assert fake.training == [None]


def test_lessons_go_through_all_preferences_in_turn() -> None:
    """Each in words of its own, the same for the same seed."""
    wishes = [wish_in_turn(0, "gaps", number) for number in range(len(PREFERENCES) + 1)]
    assert [wish.direction for wish in wishes] == [(name, 1) for name in [*PREFERENCES, *PREFERENCES][: len(wishes)]]
    assert wishes[3] == wish_in_turn(0, "gaps", 3)
    assert len({wish.text for wish in wishes}) > len(wishes) // 2
