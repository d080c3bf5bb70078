"""bot.messaging.rate_limit: bursts, averages, and waits that concern one place only."""

import asyncio

import pytest

from bot.channel import Limits
from bot.events import Place
from bot.messaging import rate_limit as limiting
from bot.messaging.rate_limit import Limiter

HERE, THERE = Place("fake", "1"), Place("fake", "2")
GROUP = Place("fake", "-3", is_private=False)


class FakeTime:
    """A clock that moves when somebody sleeps."""

    def __init__(self) -> None:
        self.now_s = 100.0

    def __call__(self) -> float:
        return self.now_s

    async def sleep(self, seconds: float) -> None:
        """In place: moves the clock."""
        self.now_s += seconds
        await asyncio.sleep(0)


@pytest.fixture
def time() -> FakeTime:
    """A clock of its own."""
    return FakeTime()


@pytest.fixture
def limiter(time: FakeTime) -> Limiter:
    """One post a second, three at once; every three seconds in groups."""
    limits = Limits(2000, len, 1.0, 1.0, 3, group_interval_s=3.0, calls_per_s=30.0)
    return Limiter(limits, time, time.sleep)


async def test_a_burst_goes_at_once_and_then_the_average_holds(limiter: Limiter, time: FakeTime) -> None:
    """Three posts need no time, ten need seven seconds."""
    for _ in range(3):
        await limiter.turn(HERE)
    assert time.now_s == 100.0
    for _ in range(7):
        await limiter.turn(HERE)
    assert time.now_s == pytest.approx(107.0)


async def test_groups_have_their_own_pace(limiter: Limiter, time: FakeTime) -> None:
    """Where others read along, posts come every three seconds."""
    for _ in range(5):
        await limiter.turn(GROUP)
    assert time.now_s == pytest.approx(106.0)


async def test_a_parked_place_waits_alone(limiter: Limiter, time: FakeTime) -> None:
    """A platform's wait holds for one place and is honoured in full; another place is not touched."""
    limiter.park(HERE, 60.0)
    await limiter.turn(THERE)
    assert time.now_s == 100.0
    await limiter.turn(HERE)
    assert 160.0 <= time.now_s <= 166.0


async def test_a_thread_shares_the_limit_of_its_chat(limiter: Limiter) -> None:
    """Telegram counts a chat with all its topics."""
    limiter.park(Place("fake", "1/77"), 60.0)
    assert limiter.wait_s(HERE) > 59


async def test_calls_over_all_places_are_limited(time: FakeTime) -> None:
    """Ninety places with one post each take two seconds at thirty a second, after a second's worth at once."""
    limiter = Limiter(Limits(2000, len, 1.0, 1.0, 3), time, time.sleep)
    for number in range(91):
        await limiter.turn(Place("fake", str(number)))
    assert time.now_s == pytest.approx(102.0, abs=0.1)


async def test_live_edits_leave_a_call_for_the_answer(limiter: Limiter) -> None:
    """Edits that may be left out never take the last call of the bucket."""
    assert [limiter.try_turn(HERE) for _ in range(4)] == [True, True, False, False]
    assert limiter.wait_s(HERE) == 0


async def test_a_single_call_is_enough_for_live_edits(time: FakeTime) -> None:
    """Without a burst there is nothing to leave over."""
    limiter = Limiter(Limits(2000, len, 1.0, 1.0, 1), time, time.sleep)
    assert limiter.try_turn(HERE)
    assert not limiter.try_turn(HERE)


async def test_edits_become_rarer(limiter: Limiter) -> None:
    """In a long answer, in a group, and after the platform complained."""
    first = limiter.edit_interval_s(HERE, 0)
    assert limiter.edit_interval_s(HERE, 20) > first
    assert limiter.edit_interval_s(GROUP, 0) > first
    limiter.park(HERE, 1.0)
    assert limiter.edit_interval_s(HERE, 0) > first


async def test_who_asks_first_goes_first(limiter: Limiter) -> None:
    """Callers of one place come out in the order in which they asked."""
    order: list[int] = []

    async def caller(number: int) -> None:
        await limiter.turn(HERE)
        order.append(number)

    await asyncio.gather(*(caller(number) for number in range(8)))
    assert order == list(range(8))


async def test_unused_places_are_forgotten(limiter: Limiter, monkeypatch: pytest.MonkeyPatch) -> None:
    """The number of remembered places is bounded, but a parked one is kept."""
    monkeypatch.setattr(limiting, "KNOWN_PLACES", 3)
    limiter.park(HERE, 60.0)
    for number in range(10, 20):
        await limiter.turn(Place("fake", str(number)))
    assert len(limiter._places) <= 5
    assert limiter.wait_s(HERE) > 0
