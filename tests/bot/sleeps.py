"""Waits that end when a test says so."""

import asyncio


class Sleeps:
    """What stands in for asyncio.sleep."""

    def __init__(self) -> None:
        self.asked: list[float] = []  # seconds
        self.next = asyncio.Event()

    async def __call__(self, seconds: float) -> None:
        self.asked.append(seconds)
        await self.next.wait()
        self.next.clear()
