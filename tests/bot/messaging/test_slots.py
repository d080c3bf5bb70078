"""bot.messaging.slots: many side by side, or one alone."""

import asyncio

import pytest

from bot.messaging.slots import Slots


class Work:
    """Says who is at work."""

    def __init__(self, slots: Slots) -> None:
        self.slots = slots
        self.at_work: set[str] = set()
        self.seen: list[set[str]] = []

    async def run(self, name: str, *, alone: bool = False) -> None:
        async with self.slots.all() if alone else self.slots.one():
            self.at_work.add(name)
            await asyncio.sleep(0)
            self.seen.append(set(self.at_work))
            await asyncio.sleep(0)
            self.at_work.remove(name)


@pytest.fixture
def work() -> Work:
    """Two places."""
    return Work(Slots(2))


async def test_as_many_as_there_are_places_work_side_by_side(work: Work) -> None:
    """And not one more."""
    await asyncio.gather(*(work.run(name) for name in "abc"))
    assert max(map(len, work.seen)) == 2


async def test_who_works_alone_sees_nobody(work: Work) -> None:
    """Two that want to be alone do not wait for each other, and whoever comes later is served, too."""
    await asyncio.gather(*(work.run(name, alone=name in "bc") for name in "abcd"))
    assert {"b"} in work.seen
    assert {"c"} in work.seen
    assert all(len(seen) == 1 for seen in work.seen if seen & {"b", "c"})
    assert len(work.seen) == 4


async def test_giving_up_leaves_every_place_free(work: Work) -> None:
    """A cancelled wait for all of them gives back what it had."""
    async with work.slots.one():
        waiting = asyncio.create_task(work.run("a", alone=True))
        await asyncio.sleep(0)
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)
    await work.run("b", alone=True)
    assert work.seen == [{"b"}]
