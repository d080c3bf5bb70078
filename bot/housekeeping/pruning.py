"""Once a day: drops the rows of platform updates and posts that are over.

An update that was handled leaves its key, so that a redelivery is recognised, and what was shown leaves its id, so that
it is shown once. Invariants: neither is dropped before `keep_updates_hours`, nor while an older update waits; what a
platform reads from old keys (`Channel.kept_keys`) stays; a few rows go at a time, so that no one's message waits.
"""

import asyncio
import time
from collections.abc import Callable

from bot.backoff import Sleep
from bot.channel import Channel
from bot.housekeeping.periodic import DAY_S, PeriodicTask
from storage.conversations import inbox, outbox
from storage.database import Database, Session

AT_ONCE = 500  # rows of each table in one transaction

Clock = Callable[[], float]


class Pruning:
    """Keeps the tables of one heed from growing for ever."""

    def __init__(
        self, database: Database, keep_s: float, *, clock: Clock = time.time, sleep: Sleep = asyncio.sleep
    ) -> None:
        self._database = database
        self._keep_s = keep_s
        self._clock = clock
        self._sleep = sleep

    async def run(self, channel: Channel) -> None:
        """Prune what concerns a platform, now and every day, until cancelled."""
        what = f"dropping old updates of {channel.platform}"
        await PeriodicTask(what, lambda: self.prune(channel), DAY_S, self._sleep).run()

    async def prune(self, channel: Channel) -> int:
        """Drop what is over; how many rows. The write-ahead log is emptied, too. Raises StorageError."""
        before_s = self._clock() - self._keep_s
        num_dropped = 0
        while num_rows := await self._database.write(lambda s: _prune(s, channel, before_s)):
            num_dropped += num_rows
        await self._database.checkpoint()
        return num_dropped


def _prune(s: Session, channel: Channel, before_s: float) -> int:
    # An update that waits may have been half handled: its posts are in the outbox under keys that it will use again.
    before_s = min(before_s, inbox.oldest_waiting_s(s, channel.platform) or before_s)
    num_keys = inbox.prune(s, channel.platform, before_s, channel.kept_keys, AT_ONCE)
    return num_keys + outbox.prune(s, channel.platform, before_s, AT_ONCE)
