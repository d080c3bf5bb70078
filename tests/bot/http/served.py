"""heed's application on a real port, behind its bounds, and raw clients of it."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import Any

from bot.http import port
from bot.http.protocol.connections import Connections
from bot.http.server import application
from tests.bot.conftest import Heed, StartHeed
from tests.patience import PATIENCE_S

GET = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"
HALF = b"GET /healthz HTTP/1.1\r\nHost: loc"  # of a request's head


@dataclass
class Raw:
    """A client that sends bytes as it likes."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter

    async def send(self, data: bytes) -> None:
        """Send bytes."""
        self.writer.write(data)
        await self.writer.drain()

    async def status(self) -> int:
        """The status of the next answer."""
        line = await asyncio.wait_for(self.reader.readline(), PATIENCE_S)
        return int(line.split()[1]) if line else 0

    async def whole_answer(self) -> int:
        """The status of an answer that is read to its end."""
        status, length = await self.status(), 0
        while (line := await asyncio.wait_for(self.reader.readline(), PATIENCE_S)).strip():
            name, _, value = line.decode().partition(":")
            length = int(value) if name.lower() == "content-length" else length
        await self.reader.readexactly(length)
        return status

    async def ended(self) -> bool:
        """Wait until heed has closed the connection."""
        try:
            await asyncio.wait_for(self.reader.read(), PATIENCE_S)
        except ConnectionError:
            return True
        return self.reader.at_eof()


@dataclass
class Served:
    """A heed on a port."""

    heed: Heed
    number: int
    connections: Connections
    raws: list[Raw]

    async def connect(self, data: bytes = b"") -> Raw:
        """A new client that has sent something."""
        self.raws.append(Raw(*await asyncio.open_connection("127.0.0.1", self.number)))
        if data:
            await self.raws[-1].send(data)
        return self.raws[-1]


@asynccontextmanager
async def served(start_heed: StartHeed, **http: Any) -> AsyncIterator[Served]:
    """A heed with these settings of its HTTP side."""
    heed = await start_heed(http=http)
    with port.listen("127.0.0.1", 0) as listener:
        async with AsyncExitStack() as stack:
            connections = await port.serve(stack, application(heed.core), listener, 1.0)
            found = Served(heed, listener.getsockname()[1], connections, [])
            yield found
            for raw in found.raws:
                raw.writer.close()
