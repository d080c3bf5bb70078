"""bot.housekeeping.periodic: again and again, until the end."""

import asyncio
import logging

import pytest

from bot.housekeeping.periodic import DAY_S, PeriodicTask, running
from storage.errors import StorageFull
from tests.bot.sleeps import Sleeps
from tests.patience import until


async def test_it_is_done_at_once_and_every_so_often(caplog: pytest.LogCaptureFixture) -> None:
    """Also after times that failed, as the log tells; no more after the end."""
    sleeps, outcomes, times = Sleeps(), [None, StorageFull("no room"), ValueError("our own mistake"), None], [0]

    async def work() -> None:
        times[0] += 1
        if error := outcomes[times[0] - 1]:
            raise error

    with caplog.at_level(logging.WARNING, "bot.housekeeping.periodic"):
        async with running([PeriodicTask("dusting", work, DAY_S, sleeps)]):
            for number in range(1, 4):
                await until(lambda n=number: len(sleeps.asked) == n)
                assert times == [number]
                sleeps.next.set()
            await until(lambda: len(sleeps.asked) == 4)
    assert [message[:23] for message in caplog.messages] == ["dusting failed: No room", "dusting failed"]
    assert sleeps.asked == [DAY_S] * 4
    assert [task for task in asyncio.all_tasks() if task.get_name() == "dusting"] == []


async def test_each_is_done_for_itself() -> None:
    """One that waits holds up no other."""
    slow, quick = asyncio.Event(), asyncio.Event()

    async def waits() -> None:
        await slow.wait()

    async def is_done() -> None:
        quick.set()

    async with running([PeriodicTask("slow", waits, DAY_S), PeriodicTask("quick", is_done, DAY_S)]):
        await until(quick.is_set)
