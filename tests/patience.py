"""How long a test waits for what comes at once: until it is clear that it never will, also on a busy machine."""

import asyncio
from collections.abc import Callable

PATIENCE_S = 300.0  # 120 were too few for an engine to come back on a busy machine


async def until(is_so: Callable[[], object]) -> None:
    """Poll until a condition holds.

    Raises:
        TimeoutError: it did not come.
    """
    async with asyncio.timeout(PATIENCE_S):
        while not is_so():  # noqa: ASYNC110  what is waited for belongs to others
            await asyncio.sleep(0.005)
