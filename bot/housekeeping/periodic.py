"""Periodic background tasks: looking at a file, dropping old rows.

Invariant: a time that failed is in the log, and is not the last one.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass

from bot.backoff import Sleep
from storage.errors import StorageError

logger = logging.getLogger(__name__)

DAY_S = 24 * 3600.0


@dataclass(frozen=True)
class PeriodicTask:
    """Something to do, and how often."""

    what: str  # as the log calls it
    work: Callable[[], Awaitable[object]]
    every_s: float
    sleep: Sleep = asyncio.sleep

    async def run(self) -> None:
        """Do it now and every so often, until cancelled."""
        while True:
            try:
                await self.work()
            except StorageError as error:
                logger.warning("%s failed: %s", self.what, error)
            except Exception:  # a named edge: whatever it was, the emergency stop among others must go on being obeyed
                logger.exception("%s failed", self.what)
            await self.sleep(self.every_s)


@asynccontextmanager
async def running(periodic_tasks: Iterable[PeriodicTask]) -> AsyncIterator[None]:
    """Run each periodic task in an asyncio task of its own as long as the block runs."""
    tasks = [asyncio.create_task(each.run(), name=each.what) for each in periodic_tasks]
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
