"""Clients that hold connections and say nothing, or next to nothing, in a process of their own.

Some have sent half a request's head; slow ones send a byte of a head or of a body every second. One that is let go
comes back. Clients have machines of their own: here their process gives way to all others, so that their own work is
not taken for heed's, and they come within a second, not in one moment.
"""

import asyncio
import contextlib
import itertools
import multiprocessing
import os
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from multiprocessing.synchronize import Event
from urllib.parse import urlsplit

from bot.housekeeping import periodic
from bot.housekeeping.periodic import PeriodicTask
from bot.http.port import raise_file_limit

LAST = 19  # in the processor's order
EACH_S = 1.0  # between two bytes of a slow client, and before a client that was let go connects again
HEAD = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nX-Long: "
BODY = b"POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100000\r\n\r\n"


@asynccontextmanager
async def connected(url: str, num_idle: int, num_slow: int) -> AsyncIterator[None]:
    """Keep so many clients connected for the length of the block."""
    context = multiprocessing.get_context("spawn")
    have_begun = context.Event()
    process = context.Process(target=hold, args=(url, num_idle, num_slow, have_begun), daemon=True)
    process.start()
    try:
        await asyncio.to_thread(have_begun.wait)
        yield
    finally:
        process.kill()
        await asyncio.to_thread(process.join)


def hold(url: str, num_idle: int, num_slow: int, have_begun: Event) -> None:
    """Be those clients until the process ends."""
    os.nice(LAST)
    raise_file_limit()
    asyncio.run(_all(url, num_idle, num_slow, have_begun))


async def _all(url: str, num_idle: int, num_slow: int, have_begun: Event) -> None:
    slow = itertools.islice(itertools.cycle((HEAD, BODY)), num_slow)
    calls = [partial(_connect, url, HEAD, is_slow=False) for _ in range(num_idle)]
    calls += [partial(_connect, url, begun, is_slow=True) for begun in slow]
    async with periodic.running(PeriodicTask("bench-crowd", call, EACH_S) for call in calls):
        have_begun.set()
        await asyncio.Event().wait()


async def _connect(url: str, begun: bytes, *, is_slow: bool) -> None:
    """Connect, within a second, and hold the connection for as long as heed lets it."""
    await asyncio.sleep(random.uniform(0, EACH_S))
    address = urlsplit(url)
    with contextlib.suppress(OSError):
        reader, writer = await asyncio.open_connection(address.hostname, address.port)
        try:
            writer.write(begun)
            await (_dribble(reader, writer) if is_slow else reader.read())
        finally:
            writer.close()


async def _dribble(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while not reader.at_eof() and not writer.is_closing():
        writer.write(b"a")
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(EACH_S):
                await reader.read(1)
