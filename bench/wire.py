"""A kept connection to heed that times the first piece of a stream, with next to no work of its own.

What a client needs to take every event apart would count as heed's: on two cores it takes the time heed wants.
"""

import asyncio
import json
import re
import time
from dataclasses import dataclass
from typing import Any, Self
from urllib.parse import urlsplit

from evals.errors import HeedUnreachable

Json = dict[str, Any]
LIMIT_BYTES = 1 << 22  # of one streamed answer
OK = b"HTTP/1.1 200 "
END = b"0\r\n\r\n"  # of a chunked body
OWN = re.compile(rb'"time_to_first_token_s": ([0-9.e-]+)')


@dataclass(frozen=True)
class FirstPiece:
    """How long the first piece of a streamed answer took, in seconds."""

    seen_s: float  # from sending the question to the first event
    engine_s: float  # the engine's own, from being asked to its first token


class Wire:
    """One connection; one question at a time."""

    def __init__(self, host: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """See `open`."""
        self._host, self._reader, self._writer = host, reader, writer

    @classmethod
    async def open(cls, url: str) -> Self:
        """Connect. Raises Unreachable."""
        address = urlsplit(url)
        try:
            opened = await asyncio.open_connection(address.hostname, address.port, limit=LIMIT_BYTES)
        except OSError as error:
            raise HeedUnreachable(f"no heed answers at {url}: {error}") from error
        return cls(address.netloc, *opened)

    async def close(self) -> None:
        """Disconnects."""
        self._writer.close()
        await self._writer.wait_closed()

    async def first_piece(self, body: Json) -> FirstPiece:
        """Send a chat call that streams, and reads to the end. Raises Unreachable if no stream comes."""
        content = json.dumps(body).encode()
        head = f"POST /v1/chat/completions HTTP/1.1\r\nHost: {self._host}\r\nContent-Length: {len(content)}\r\n\r\n"
        request = head.encode() + content
        started_s = time.perf_counter()
        try:
            self._writer.write(request)
            begun = await self._reader.readuntil(b"\r\n\r\n")
            if not begun.startswith(OK):
                raise HeedUnreachable(f"{self._host} streamed no answer: {begun.splitlines()[0].decode()}")
            await self._reader.readuntil(b"data: ")
            seen_s = time.perf_counter() - started_s
            rest = await self._reader.readuntil(END)
        except (asyncio.IncompleteReadError, OSError) as error:
            raise HeedUnreachable(f"{self._host} went away: {error}") from error
        told = OWN.search(rest)
        if told is None:
            raise HeedUnreachable(f"{self._host} did not say how long its engine took")
        return FirstPiece(seen_s, float(told[1]))
