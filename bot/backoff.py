"""Waiting times after failures in a row, up to a minute; and work that is tried again while storage is away."""

import asyncio
import logging
import random
from collections.abc import Awaitable, Callable

from storage.errors import StorageError

logger = logging.getLogger(__name__)

MAX_BACKOFF_S = 60.0
MIN_BACKOFF_S = 0.1
MAX_DOUBLINGS = 10  # far beyond the longest wait; a platform may be away for days, and 2.0**1024 is no number

Jitter = Callable[[float, float], float]
Sleep = Callable[[float], Awaitable[None]]


def backoff_s(num_failures: int, jitter: Jitter = random.uniform) -> float:
    """Seconds to wait after this many failures in a row."""
    return jitter(MIN_BACKOFF_S, min(2.0 ** min(num_failures, MAX_DOUBLINGS), MAX_BACKOFF_S))


async def while_storage_is_away(
    what: str, work: Callable[[], Awaitable[None]], sleep: Sleep = asyncio.sleep, jitter: Jitter = random.uniform
) -> None:
    """Do `work`, repeated until storage lets it; `what` says in the log what waits meanwhile."""
    num_failures = 0
    while True:
        try:
            return await work()
        except StorageError as error:
            num_failures += 1
            logger.warning("%s waits for storage: %s", what, error)
        await sleep(backoff_s(num_failures, jitter))
