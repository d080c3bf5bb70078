"""One real heed with the pocket model, on both platforms, for every test that talks to one: a start takes 20 s.

The Telegram and the Discord it talks to run on a loop in a thread of their own: they answer it whatever the tests do.
"""

import asyncio
import signal
import threading
from collections.abc import Coroutine, Mapping
from concurrent.futures import Future
from pathlib import Path
from typing import Any, TypeVar

import aiohttp
import psutil

from evals.server import HeedServer
from tests.contract import discord_world
from tests.contract.discord_server import DiscordServer
from tests.contract.telegram_server import TelegramServer
from tests.engine.pocket_model import pocket_folder
from tests.patience import PATIENCE_S

T = TypeVar("T")


class LiveHeed:
    """A `heed run` process that keeps its data when it is started again."""

    def __init__(self, config_file: Path, program: tuple[str, ...], settings: Mapping[str, str]) -> None:
        """`config_file` is heed's: whatever settings lie about on this machine are not read.

        `program` is what is started, with `settings` as variables.
        """
        self._config_file = config_file
        self.telegram = TelegramServer()
        self.discord = DiscordServer()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="live heed", daemon=True)
        self._thread.start()
        self.run(self.telegram.start())
        self.run(self.discord.start())
        self._server = HeedServer({"HEED_CONFIG": str(config_file), **self._settings(), **settings})
        self._server.program = program

    @property
    def url(self) -> str:
        """The address it answers at; the same after a restart."""
        return self._server.url

    @property
    def pid(self) -> int:
        """The process id. Only while it runs."""
        assert self._server.pid is not None
        return self._server.pid

    @property
    def server(self) -> HeedServer:
        """The server object that starts and ends it, for work on the loop of the platforms."""
        return self._server

    @property
    def lines(self) -> list[str]:
        """The lines it has written since its start."""
        return self._server.lines()

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine on the loop of the platforms and return its result."""
        return self.begin(work).result()

    def begin(self, work: Coroutine[Any, Any, T]) -> Future[T]:
        """Begin a coroutine on the loop of the platforms."""
        return asyncio.run_coroutine_threadsafe(work, self._loop)

    def start(self) -> None:
        """Start it unless it runs, and wait until it says that it is ready and hears both platforms."""
        if self._server.pid is None:
            self.run(self._start())

    def end(self, with_signal: signal.Signals = signal.SIGTERM) -> int | None:
        """End it; its exit code."""
        return self.run(self._server.end(with_signal))

    def configure(self, text: str) -> None:
        """Write its settings file, read from the next start on."""
        self._config_file.write_text(text)

    def family(self) -> list[psutil.Process]:
        """The process and all its children."""
        parent = psutil.Process(self.pid)
        return [parent, *parent.children(recursive=True)]

    def close(self) -> None:
        """End all of it and remove the data."""
        self.run(self._close())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    async def _start(self) -> None:
        await self._server.start()
        async with asyncio.timeout(PATIENCE_S):
            while not any("ready in" in line for line in self.lines):  # noqa: ASYNC110  a file sends no notice
                await asyncio.sleep(0.01)
            async with aiohttp.ClientSession(self.url) as session:
                while not await hears_platforms(session):  # noqa: ASYNC110  heed sends no notice
                    await asyncio.sleep(0.01)

    async def _close(self) -> None:
        await self._server.stop()
        await self.telegram.stop()
        await self.discord.stop()
        left = asyncio.all_tasks() - {asyncio.current_task()}  # calls of a heed that was killed
        for task in left:
            task.cancel()
        await asyncio.gather(*left, return_exceptions=True)

    def _settings(self) -> dict[str, str]:
        return {
            "HEED_MODEL": str(pocket_folder()),
            "HEED_ACCESS_MODE": "open",
            "TELEGRAM_BOT_TOKEN": self.telegram.token,
            "HEED_TELEGRAM_API_BASE": self.telegram.url,
            "DISCORD_BOT_TOKEN": discord_world.TOKEN,
            "HEED_DISCORD_API_BASE": self.discord.api_base,
            "HEED_DISCORD_TRAINING_PERMISSION": "a letter of 2026-01-01",
        }


async def hears_platforms(session: aiohttp.ClientSession) -> bool:
    """Is heed connected to both: what is said on Discord before that reaches nobody."""
    async with session.get("/readyz") as response:
        parts: dict[str, str] = (await response.json())["parts"]
    return parts["telegram"] == parts["discord"] == "ok"
