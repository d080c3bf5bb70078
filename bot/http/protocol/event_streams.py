"""Open streams of server-sent events, which end with their client and when heed stops."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress

from aiohttp import web

CONTENT_TYPE = "text/event-stream"


class EventStreams:
    """The streams of one part of an application."""

    def __init__(self) -> None:
        self._writers: set[asyncio.Task[None]] = set()

    def __len__(self) -> int:
        """Return how many are open."""
        return len(self._writers)

    async def serve(
        self,
        request: web.Request,
        write: Callable[[web.StreamResponse], Awaitable[None]],
        headers: Mapping[str, str],
    ) -> web.StreamResponse:
        """Answer with a stream into which `write` writes until it returns, the client leaves or heed stops."""
        response = web.StreamResponse(headers={"Content-Type": CONTENT_TYPE, **headers})
        await response.prepare(request)
        writer = asyncio.create_task(_written(write, response), name=f"events of {request.path}")
        self._writers.add(writer)
        try:
            await asyncio.wait({writer})
        finally:
            writer.cancel()
            self._writers.discard(writer)
        return response

    def end(self) -> None:
        """End every stream."""
        for writer in self._writers.copy():
            writer.cancel()


async def _written(write: Callable[[web.StreamResponse], Awaitable[None]], response: web.StreamResponse) -> None:
    with suppress(ConnectionResetError):  # the client left
        await write(response)
