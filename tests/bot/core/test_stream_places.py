"""bot.core.stream_places: places for answers, given out fairly from a bounded queue."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager

import pytest

from bot.config import HttpSettings
from bot.core.stream_places import StreamPlaces
from bot.errors import Overloaded
from tests.patience import PATIENCE_S, until


class Door:
    """Streams that come and go, by name, and who was let in, in order."""

    def __init__(self, *, max_streams: int = 2, max_waiting: int = 10, max_streams_each: int = 2) -> None:
        self.numbers = (0, 0)
        settings = HttpSettings(max_streams=max_streams, max_waiting=max_waiting, max_streams_each=max_streams_each)
        self.places = StreamPlaces(settings, self._note)
        self.let_in: list[str] = []
        self._ends: dict[str, asyncio.Event] = {}
        self.told: dict[str, list[int]] = {}  # how many were before each
        self.tasks: dict[str, asyncio.Task[float]] = {}

    def _note(self, num_held: int, num_waiting: int) -> None:
        self.numbers = (num_held, num_waiting)

    async def come(self, name: str) -> None:
        """Begin a stream of the owner whose letter the name begins with; return once it is in or waits."""
        self._ends[name] = asyncio.Event()
        before = sum(self.numbers)
        self.tasks[name] = asyncio.create_task(self._stream(name))
        await until(lambda: sum(self.numbers) > before or self.tasks[name].done())

    async def go(self, name: str) -> None:
        """End a stream."""
        self._ends[name].set()
        await self.tasks[name]
        await asyncio.sleep(0)

    async def _stream(self, name: str) -> float:
        told: Callable[[int], None] = self.told.setdefault(name, []).append
        async with self.places.place(name[0], PATIENCE_S, told) as waited_s:
            self.let_in.append(name)
            await self._ends[name].wait()
        return waited_s


@asynccontextmanager
async def door(**limits: int) -> AsyncIterator[Door]:
    """A door whose streams are ended at last."""
    opened = Door(**limits)
    async with AsyncExitStack() as stack:
        stack.callback(lambda: [task.cancel() for task in opened.tasks.values()])
        yield opened


async def test_who_comes_first_is_let_in_until_it_is_full() -> None:
    """Two write, the third waits until one has ended, and is told how long that took."""
    async with door() as at:
        for name in ("a1", "b1", "c1"):
            await at.come(name)
        assert (at.let_in, at.numbers, at.places.num_held) == (["a1", "b1"], (2, 1), 2)
        await at.go("a1")
        await until(lambda: "c1" in at.let_in)
        assert at.numbers == (2, 0)
        await at.go("c1")
        assert at.tasks["c1"].result() > 0


async def test_a_place_goes_to_who_holds_the_fewest() -> None:
    """One who has waited with many is let in after another who has none, and before their own next one."""
    async with door(max_streams=2) as at:
        for name in ("a1", "a2", "a3", "a4", "b1"):
            await at.come(name)
        await at.go("a1")
        await until(lambda: "b1" in at.let_in)
        await at.go("a2")
        await until(lambda: "a3" in at.let_in)
        assert "a4" not in at.let_in


async def test_one_owner_leaves_room_for_another() -> None:
    """Above their share an owner waits although places are free, and others do not."""
    async with door(max_streams=4, max_streams_each=2) as at:
        for name in ("a1", "a2", "a3", "b1"):
            await at.come(name)
        assert at.let_in == ["a1", "a2", "b1"]


async def test_who_waits_is_told_how_many_are_before() -> None:
    """In the order in which places will be given out, and again whenever that changes."""
    async with door(max_streams=1) as at:
        for name in ("a1", "a2", "b1", "b2"):
            await at.come(name)
        told = {name: numbers[-1] for name, numbers in at.told.items() if numbers}
        assert told == {"b1": 0, "b2": 1, "a2": 2}
        await at.go("a1")
        await until(lambda: at.let_in == ["a1", "a2"])  # who holds none any more, and has waited longest
        assert {name: at.told[name][-1] for name in ("b1", "b2")} == {"b1": 0, "b2": 1}
        await at.go("a2")
        await until(lambda: at.told["b2"][-1] == 0)


async def test_there_is_room_for_whom_a_place_would_be_had_at_once() -> None:
    """Neither where all are taken nor where someone has their share."""
    async with door(max_streams=3, max_streams_each=2) as at:
        for name in ("a1", "a2"):
            await at.come(name)
        assert (at.places.has_room("a"), at.places.has_room("b")) == (False, True)
        await at.come("b1")
        assert not at.places.has_room("b")


async def test_a_full_queue_is_refused() -> None:
    """The queue holds max_waiting; the next one is told how many wait."""
    async with door(max_streams=1, max_waiting=1) as at:
        for name in ("a1", "b1", "c1"):
            await at.come(name)
        with pytest.raises(Overloaded, match="1 more wait"):
            await at.tasks["c1"]
        assert at.numbers == (1, 1)


async def test_who_leaves_the_queue_is_forgotten() -> None:
    """A place goes past those who have left, and none is lost; also one who leaves as they are let in."""
    async with door(max_streams=1) as at:
        for name in ("a1", "b1", "c1"):
            await at.come(name)
        at.tasks["b1"].cancel()
        await until(lambda: at.numbers == (1, 1))
        await at.go("a1")
        await until(lambda: "c1" in at.let_in)
        await at.come("d1")
        at._ends["c1"].set()
        at.tasks["d1"].cancel()
        await until(lambda: at.numbers == (0, 0))


async def test_no_one_waits_for_ever() -> None:
    """After the time that is given the call is refused and leaves the queue."""
    async with door(max_streams=1) as at:
        await at.come("a1")
        with pytest.raises(Overloaded, match="for 0 s"):
            async with at.places.place("b", 0.01):
                pass
        assert at.numbers == (1, 0)
