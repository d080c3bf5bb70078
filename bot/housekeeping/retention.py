"""Once a day: old answers that no one said anything about are dropped, with the words they answered.

Only where the operator says so (`keep_completions_days`). Invariants: an answer stays as long as feedback, approval or
a better answer rests on it; nothing of a dropped one is left in the database or its log; a few rows go at a time, so
that no one's message waits.
"""

import time
from collections.abc import Callable

from bot.housekeeping.periodic import DAY_S
from storage.conversations import completions
from storage.database import Database

AT_ONCE = 200  # answers in one transaction; each has its token ids and log-probabilities

Clock = Callable[[], float]


class Retention:
    """Drops what one heed need not keep."""

    def __init__(self, database: Database, keep_days: int, *, clock: Clock = time.time) -> None:
        self._database = database
        self._keep_s = keep_days * DAY_S
        self._clock = clock

    async def drop(self) -> int:
        """Drop what is old; how many answers. The write-ahead log is emptied, too. Raises StorageError."""
        before_s = self._clock() - self._keep_s
        num_dropped = 0
        while num := await self._database.write(lambda s: completions.drop_unneeded(s, before_s, AT_ONCE)):
            num_dropped += num
        await self._database.checkpoint()
        return num_dropped
