"""A stream that waits for its place says so in comments, which OpenAI's clients ignore: ": waiting, 3 before you".

Invariants: a short wait has no sign, so that what is refused meanwhile is an ordinary error response; after the first
comment the response has begun, and an error can only be told in it.
"""

import asyncio
from contextlib import suppress
from dataclasses import dataclass, field

from aiohttp import web

from bot.http.protocol.event_streams import CONTENT_TYPE

SHOWN_AFTER_S = 1.0
HEADERS = {"Content-Type": CONTENT_TYPE, "Cache-Control": "no-store", "X-Accel-Buffering": "no"}


@dataclass
class WaitSign:
    """The sign of one call. Hand `move` to the queue; `end` it before anything else is written."""

    request: web.Request
    response: web.StreamResponse = field(default_factory=lambda: web.StreamResponse(headers=HEADERS))
    _num_before: int = 0
    _has_moved: asyncio.Event = field(default_factory=asyncio.Event)
    _is_over: asyncio.Event = field(default_factory=asyncio.Event)
    _task: asyncio.Task[None] | None = None

    def move(self, num_before: int) -> None:
        """Show how many wait before this call."""
        self._num_before = num_before
        self._has_moved.set()
        if self._task is None:
            self._task = asyncio.create_task(self._show(), name="sign of a wait")

    async def end(self) -> bool:
        """Show nothing more. Return True if the response has begun."""
        self.close()
        if self._task is not None:
            await self._task
        return self.response.prepared

    def close(self) -> None:
        """Begin no further comment; harmless to repeat."""
        self._is_over.set()
        self._has_moved.set()

    async def _show(self) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(SHOWN_AFTER_S):
                await self._is_over.wait()
        with suppress(ConnectionResetError):  # the client left: the next write of the answer says so
            if not self._is_over.is_set():
                await self.response.prepare(self.request)
            while not self._is_over.is_set():
                self._has_moved.clear()
                await self.response.write(f": waiting, {self._num_before} before you\n\n".encode())
                await self._has_moved.wait()
