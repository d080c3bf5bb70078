"""The cost of one waiting chat for the others is measured on the real parts, and judged against its target."""

import asyncio
from collections import defaultdict

import pytest

from bench import parked
from bench.config import BenchConfig
from bot.channel import Post, SlowDown
from bot.messaging.delivery import Delivery

WAIT_S = 2.5  # far longer than a busy machine holds up a burst by itself
CONFIG = BenchConfig(chats=3, rounds=1, only=("parked",))


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parked, "BURSTS", 2)
    monkeypatch.setattr("bot.messaging.supervisor.LAST_POSTS_S", 0.0)


async def test_every_message_of_the_others_is_measured() -> None:
    """Both bursts of a pair have one sample per chat that does not wait."""
    told: list[str] = []
    samples = await parked.measure(CONFIG, told.append)
    assert [len(burst) for kind in (parked.WITH, parked.WITHOUT) for burst in samples[kind]] == [2, 2, 2, 2]
    assert told == ["parked"] * parked.units(CONFIG)


async def test_a_wait_that_holds_up_everybody_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """A delivery in which one chat's wait stops all chats misses the target."""
    monkeypatch.setattr("bench.instant.RETRY_AFTER_S", WAIT_S)
    turn, lines = Delivery._post, defaultdict[int, asyncio.Lock](asyncio.Lock)  # a heed holds up no other one

    async def one_after_the_other(self: Delivery, channel: object, post: Post) -> str:
        async with lines[id(channel)]:
            try:
                return await turn(self, channel, post)  # type: ignore[arg-type]
            except SlowDown:
                await asyncio.sleep(WAIT_S)  # the others wait, too
                raise

    monkeypatch.setattr(Delivery, "_post", one_after_the_other)
    *_, judged = parked.rows(await parked.measure(CONFIG, lambda _: None))
    assert judged.is_met is False


def test_the_median_of_the_pairs_is_judged() -> None:
    """One disturbed pair of bursts says nothing, a tenth more in most of them does."""
    usual = [[10.0, 10.0]] * 5
    disturbed = [[100.0, 100.0], *usual[1:]]
    assert [row.is_met for row in parked.rows({parked.WITH: disturbed, parked.WITHOUT: usual})] == [None, None, True]
    slower = [[11.5, 11.5]] * 5
    assert [row.is_met for row in parked.rows({parked.WITH: slower, parked.WITHOUT: usual})] == [None, None, False]
