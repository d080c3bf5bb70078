"""A whole heed over the fake engine, served on a port of its own from a thread of its own."""

import asyncio
import shutil
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.bot.conftest import Heed, heeds

START_TIMEOUT_S = 60.0


@contextmanager
def served() -> Iterator[str]:
    """Its address, as long as the block runs."""
    folder = Path(tempfile.mkdtemp(prefix="heed-contract-"))
    loop = asyncio.new_event_loop()
    started: asyncio.Future[Heed] = loop.create_future()
    is_over = asyncio.Event()

    async def serve() -> None:
        async with heeds(folder / "data") as start:
            started.set_result(await start())
            await is_over.wait()

    async def address() -> str:
        async with asyncio.timeout(START_TIMEOUT_S):
            return str((await started).client.make_url("/"))

    thread = threading.Thread(target=loop.run_until_complete, args=(serve(),), name="heed")
    thread.start()
    try:
        yield asyncio.run_coroutine_threadsafe(address(), loop).result().rstrip("/")
    finally:
        loop.call_soon_threadsafe(is_over.set)
        thread.join()
        loop.close()
        shutil.rmtree(folder)
