"""The people a benchmark talks as."""

from bench.config import BenchConfig
from bench.people import person, share_a_lesson, wish_in_turn
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


async def test_one_lesson_is_shared_by_all() -> None:
    """One person is taught, and each of the others has that version as their own first one."""
    fake = FakeHeed()
    steps: list[None] = []
    async with serving(fake) as url, Client(url) as client:
        await share_a_lesson(BenchConfig(), client, ["ana", "ben", "cy"], lambda: steps.append(None))
    taught = fake.user("ana").versions[1]
    assert set(fake.users) == {"ana", "ben", "cy"}
    assert all((user.active, user.versions[-1]) == (1, taught) for user in fake.users.values())
    assert len(steps) == 3
