"""Once a day: old answers that nobody said anything about are dropped, with the words they answered.

Only where the operator says so (`keep_completions_days`). Invariants: an answer stays as long as feedback, approval or
a better answer rests on it; nothing of a dropped one is left in the database or its log; a few rows go at a time, so
that nobody's message waits.
"""

import asyncio
import logging
import time
from collections.abc import Callable

from bot.backoff import Sleep
from storage import completions
from storage.database import Database
from storage.errors import StorageError

log = logging.getLogger(__name__)

DAY_S = 24 * 3600.0
AT_ONCE = 200  # answers in one transaction; each has its token ids and log-probabilities

Clock = Callable[[], float]


class Retention:
    """Drops what one heed need not keep."""

    def __init__(
        self, database: Database, keep_days: int, *, clock: Clock = time.time, sleep: Sleep = asyncio.sleep
    ) -> None:
        self._database = database
        self._keep_s = keep_days * DAY_S
        self._clock = clock
        self._sleep = sleep
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Drop what is old now and every day, in a task of its own."""
        self._task = asyncio.create_task(self._run(), name="heed-retention")

    async def stop(self) -> None:
        """Drop nothing more."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def drop(self) -> int:
        """Drop what is old; how many answers. The write-ahead log is emptied, too. Raises StorageError."""
        before_s = self._clock() - self._keep_s
        num_dropped = 0
        while num := await self._database.write(lambda s: completions.drop_unneeded(s, before_s, AT_ONCE)):
            num_dropped += num
        await self._database.checkpoint()
        return num_dropped

    async def _run(self) -> None:
        while True:
            try:
                await self.drop()
            except StorageError as error:
                log.warning("old answers could not be dropped: %s", error)
            await self._sleep(DAY_S)
