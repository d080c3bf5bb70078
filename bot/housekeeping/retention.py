"""Retention: once a day old answers and old platform updates are dropped, a few rows at a time.

Answers, with the words they answered, go only if the operator says so (`keep_completions_days`), and none that
feedback, approval or a better answer rests on. An update that was handled leaves its key, so that a redelivery is
recognised, and what was shown leaves its id, so that it is shown once: neither is dropped before `keep_updates_hours`,
nor while an older update waits, and what a platform reads from old keys (`Channel.kept_keys`) stays. Invariants:
nothing of a dropped row is left in the database or its log; no message waits for it.
"""

import asyncio
import time
from collections.abc import Callable

from bot.backoff import Sleep
from bot.channel import Channel
from bot.housekeeping.periodic import DAY_S, PeriodicTask
from storage.conversations import completions, inbox, outbox
from storage.database import Database, Session

ANSWERS_AT_ONCE = 200  # in one transaction; each has its token ids and log-probabilities
UPDATES_AT_ONCE = 500  # rows of each table in one transaction

Clock = Callable[[], float]
Drop = Callable[[Session], int]  # drops some rows, and returns how many


class AnswerRetention:
    """Drops answers that heed need not keep."""

    def __init__(self, database: Database, keep_days: int, *, clock: Clock = time.time) -> None:
        self._database = database
        self._keep_s = keep_days * DAY_S
        self._clock = clock

    async def drop(self) -> int:
        """Drop old answers that no feedback speaks of. Return how many. Raises StorageError."""
        before_s = self._clock() - self._keep_s
        return await _drop_all(self._database, lambda s: completions.drop_unneeded(s, before_s, ANSWERS_AT_ONCE))


class UpdateRetention:
    """Keeps the tables of platform updates and posts from growing for ever."""

    def __init__(
        self, database: Database, keep_s: float, *, clock: Clock = time.time, sleep: Sleep = asyncio.sleep
    ) -> None:
        self._database = database
        self._keep_s = keep_s
        self._clock = clock
        self._sleep = sleep

    async def run(self, channel: Channel) -> None:
        """Drop old rows of a platform now and every day, until cancelled."""
        what = f"dropping old updates of {channel.platform}"
        await PeriodicTask(what, lambda: self.drop(channel), DAY_S, self._sleep).run()

    async def drop(self, channel: Channel) -> int:
        """Drop the rows of a platform that are over. Return how many. Raises StorageError."""
        before_s = self._clock() - self._keep_s
        return await _drop_all(self._database, lambda s: _drop_updates(s, channel, before_s))


async def _drop_all(database: Database, drop: Drop) -> int:
    """Drop rows until none is left, and empty the write-ahead log. Return how many."""
    num_dropped = 0
    while num := await database.write(drop):
        num_dropped += num
    await database.checkpoint()
    return num_dropped


def _drop_updates(s: Session, channel: Channel, before_s: float) -> int:
    # An update that waits may have been half handled: its posts are in the outbox under keys that it will use again.
    before_s = min(before_s, inbox.oldest_waiting_s(s, channel.platform) or before_s)
    num_keys = inbox.prune(s, channel.platform, before_s, channel.kept_keys, UPDATES_AT_ONCE)
    return num_keys + outbox.prune(s, channel.platform, before_s, UPDATES_AT_ONCE)
