"""A connection between two parts of a cluster that can be cut without either hearing of it, or be slow.

What was sent while it was cut arrives once it is mended, as after a partition: a write of who was cut off comes late.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, closing, suppress

CHUNK_BYTES = 1 << 16

Connect = Callable[[], Awaitable[tuple[asyncio.StreamReader, asyncio.StreamWriter]]]


class Wire:
    """A port on this machine; what comes there goes to `connect`'s, and back."""

    def __init__(self, connect: Connect) -> None:
        self.port = 0
        self.delay_s = 0.0  # of each piece
        self._connect = connect
        self._passes = asyncio.Event()
        self._passes.set()
        self._server: asyncio.Server | None = None
        self._carrying: set[asyncio.Task[None]] = set()

    async def start(self) -> None:
        """Listen."""
        self._server = await asyncio.start_server(self._joined, "127.0.0.1", 0)
        self.port = self._server.sockets[0].getsockname()[1]

    async def stop(self) -> None:
        """Close it, with all that goes through it."""
        assert self._server is not None
        self._server.close()
        for task in self._carrying:
            task.cancel()
        await asyncio.gather(*self._carrying, return_exceptions=True)

    async def cut(self, seconds: float) -> None:
        """Let nothing pass for a while; nobody is told."""
        self._passes.clear()
        try:
            await asyncio.sleep(seconds)
        finally:
            self._passes.set()

    async def slow(self, delay_s: float, seconds: float) -> None:
        """Let each piece wait for a while."""
        self.delay_s = delay_s
        try:
            await asyncio.sleep(seconds)
        finally:
            self.delay_s = 0.0

    async def _joined(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Carry one connection until an end of it is closed."""
        task = asyncio.current_task()
        assert task is not None
        self._carrying.add(task)
        try:
            await self._passes.wait()
            far_reader, far_writer = await self._connect()
            with closing(far_writer):
                ways = [asyncio.create_task(self._carry(*way)) for way in ((reader, far_writer), (far_reader, writer))]
                try:
                    await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
                finally:
                    for way in ways:
                        way.cancel()
                    await asyncio.gather(*ways, return_exceptions=True)
        except (OSError, asyncio.CancelledError):  # the far end is gone, or this one is
            pass
        finally:
            writer.close()
            self._carrying.discard(task)

    async def _carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError):
            while piece := await reader.read(CHUNK_BYTES):
                await self._passes.wait()
                if self.delay_s:
                    await asyncio.sleep(self.delay_s)
                writer.write(piece)
                await writer.drain()


@asynccontextmanager
async def wire(connect: Connect) -> AsyncIterator[Wire]:
    """Provide a wire that listens."""
    made = Wire(connect)
    await made.start()
    try:
        yield made
    finally:
        await made.stop()
