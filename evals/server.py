"""Starts a heed of its own to measure, and stops it: a child process on a free port with a data directory of its own.

Invariants: the heed is stopped by its process id, also when the measurement fails, and its data is removed unless it
was given a folder, in which an interrupted measurement finds it again; nothing of a heed that runs elsewhere on the
machine is touched, and people's chats are left to it: no bot is switched on.
"""

import asyncio
import os
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import ExitStack, asynccontextmanager
from pathlib import Path

from bot.config import BOT_TOKENS
from evals.client import Client
from evals.errors import HeedUnreachable, StartFailed
from evals.ports import reserved_port

START_TIMEOUT_S = 600.0
STOP_TIMEOUT_S = 45.0  # heed promises 30 s
POLL_S = 0.05
VERSIONS_KEPT = "1000"  # measurements go back along all of a person's versions
_ROOT = Path(__file__).parent.parent
_TOKENS = {*BOT_TOKENS.values(), *(f"HEED_{name.upper()}_TOKEN" for name in BOT_TOKENS)}


class HeedServer:
    """One heed in a child process."""

    def __init__(self, settings: Mapping[str, str] | None = None, folder: Path | None = None) -> None:
        """Take `settings` as variables over those of this process; a bot runs only where its token is among them.

        What is in a `folder` that is given stays there when heed is stopped; without one it has one for the time being.
        """
        self._is_kept = folder is not None
        self.folder = folder or Path(tempfile.mkdtemp(prefix="heed-measured-"))
        self.folder.mkdir(parents=True, exist_ok=True)
        self._held = ExitStack()  # no other process is given the port, also between an end and a start
        self.port = self._held.enter_context(reserved_port())
        self.url = f"http://127.0.0.1:{self.port}"
        self.program: tuple[str, ...] = ("bot", "run")  # the module that is started, and its command
        self._settings = dict(settings or {})
        self._process: asyncio.subprocess.Process | None = None

    @property
    def pid(self) -> int | None:
        """The process id while it runs, otherwise None."""
        return self._process.pid if self._process and self._process.returncode is None else None

    async def start(self) -> float:
        """Start it; returns the seconds until it was ready. Raises StartFailed with its last words."""
        started_s = time.perf_counter()
        with self._log.open("wb") as log:
            self._process = await asyncio.create_subprocess_exec(
                sys.executable, "-m", *self.program, "--no-terminal",
                stdin=asyncio.subprocess.DEVNULL, stdout=log, stderr=log, cwd=_ROOT, env=self._environment(),
                start_new_session=True,  # Ctrl-C is for the measurement, which then ends its heed in order
            )  # fmt: skip
        async with Client(self.url) as client:
            while not await client.is_ready():
                if self._process.returncode is not None or time.perf_counter() - started_s > START_TIMEOUT_S:
                    raise StartFailed(f"heed did not start: {self.last_words()}")
                await asyncio.sleep(POLL_S)
        return time.perf_counter() - started_s

    async def stop(self) -> None:
        """End it and remove its data, unless they stand in a folder that was given; its port is free."""
        await self.end()
        self._held.close()
        if not self._is_kept:
            await asyncio.to_thread(shutil.rmtree, self.folder, ignore_errors=True)

    async def end(self, with_signal: signal.Signals = signal.SIGTERM) -> int | None:
        """End it, by force if it does not end in time; its data stays. Return the exit code, None if never started."""
        if self._process is not None and self._process.returncode is None:
            self._process.send_signal(with_signal)
            try:
                async with asyncio.timeout(STOP_TIMEOUT_S):
                    await self._process.wait()
            except TimeoutError:
                self._process.kill()
                await self._process.wait()
        return self._process.returncode if self._process else None

    def lines(self) -> list[str]:
        """Return what it has written since its start."""
        text = self._log.read_text(errors="replace") if self._log.exists() else ""
        return [line.strip() for line in text.splitlines() if line.strip()]

    def log_bytes(self) -> int:
        """Return the size of what it has written since its start."""
        return self._log.stat().st_size if self._log.exists() else 0

    def last_words(self) -> str:
        """Return the last line it wrote."""
        return (self.lines() or ["it wrote nothing"])[-1]

    @property
    def _log(self) -> Path:
        return self.folder / "log"

    def _environment(self) -> dict[str, str]:
        own = {
            "HEED_HTTP_HOST": "127.0.0.1",
            "HEED_HTTP_PORT": str(self.port),
            "HEED_HTTP_API_KEYS": "{}",
            "HEED_HTTP_NEW_PEOPLE_PER_HOUR": "1000000",  # every person of a run comes from here
            "HEED_DATA_DIR": str(self.folder / "data"),
            "HEED_VERSIONS_KEEP": VERSIONS_KEPT,
        }
        off = {
            f"HEED_{name.upper()}": '{"token": null}'
            for name, token in BOT_TOKENS.items()
            if token not in self._settings
        }
        inherited = {name: value for name, value in os.environ.items() if name not in _TOKENS}
        return {**inherited, **own, **off, **self._settings}


@asynccontextmanager
async def running(
    url: str = "", folder: Path | None = None, settings: Mapping[str, str] | None = None
) -> AsyncIterator[str]:
    """Provide the address of a ready heed: the one at `url`, or one of its own meanwhile, with these settings, whose
    data stay in a `folder`.
    """
    if url:
        await _require_ready(url)
        yield url
        return
    async with own(settings, folder) as own_url:
        yield own_url


@asynccontextmanager
async def own(settings: Mapping[str, str] | None = None, folder: Path | None = None) -> AsyncIterator[str]:
    """Provide the address of a ready heed of our own, with these settings; it is gone afterwards."""
    server = HeedServer(settings, folder)
    try:
        await server.start()
        yield server.url
    finally:
        await server.stop()


async def _require_ready(url: str) -> None:
    async with Client(url) as client:
        if not await client.is_ready():
            raise HeedUnreachable(f"no heed is ready at {url}; start one with `heed run`, or leave url away")
