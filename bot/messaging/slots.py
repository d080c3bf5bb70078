"""How much is handled at once: a number of things side by side, or one of them alone."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager


class Slots:
    """`num` places, given in the order in which they were asked for."""

    def __init__(self, num: int) -> None:
        self._num = num
        self._free = asyncio.Semaphore(num)
        self._is_gathering = asyncio.Lock()  # two that gather all at once would wait for each other

    @asynccontextmanager
    async def one(self) -> AsyncIterator[None]:
        """One place, beside others."""
        async with self._free:
            yield

    @asynccontextmanager
    async def all(self) -> AsyncIterator[None]:
        """Every place: begins when nobody else has one, and nobody gets one before it ends."""
        async with AsyncExitStack() as taken:
            async with self._is_gathering:
                for _ in range(self._num):
                    await taken.enter_async_context(self._free)
            yield
