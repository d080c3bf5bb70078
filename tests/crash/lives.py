"""Lives of a heed that is made to be killed, as the process outside sees them: it begins, kills, stops and buries.

Invariant: a life has ended only when it and every process that it had begun are gone (`tests.crash.forks`).
"""

import asyncio
import os
import signal
import time
from contextlib import suppress
from pathlib import Path

import psutil

from tests.crash.forks import TELL

WAIT_S = 120.0
TELLING_S = 1.0


class Lives:
    """The process that forks a heed for every life."""

    def __init__(self, process: asyncio.subprocess.Process, data_dir: Path, mode: str) -> None:
        self._process = process
        self._data_dir = data_dir
        self._mode = mode
        self._living: int | None = None

    @property
    def pid(self) -> int:
        """The process that forks; what a life has left behind is its child."""
        return self._process.pid

    async def begin(self, point: str = "none", number: int = 0) -> int:
        """A new heed; its pid."""
        assert self._process.stdin is not None
        self._process.stdin.write(f"{self._data_dir} {self._mode} {point} {number}\n".encode())
        self._living = int(await self._line(WAIT_S))
        return self._living

    async def kill(self, pid: int) -> None:
        """End a heed at once. Raises TimeoutError if something of it stays."""
        os.kill(pid, signal.SIGKILL)  # no process has waited for it, so the pid is still its own
        await self.died()

    async def died(self, patience_s: float = WAIT_S) -> None:
        """Wait for a heed that is killed, or kills itself. Raises TimeoutError if something of it stays for so long."""
        await self._ended(-signal.SIGKILL, patience_s)

    async def stop(self, pid: int) -> float:
        """Ask a heed to end, which it must do in good order; how long that took, in seconds.

        Raises TimeoutError, with what stays, if it does not; it says on standard error what it waits for.
        """
        asked_s = time.monotonic()
        os.kill(pid, signal.SIGTERM)
        try:
            await self._ended(0)
        except TimeoutError:
            left = self.left()
            if pid in left:
                os.kill(pid, TELL)
            await asyncio.sleep(TELLING_S)
            raise TimeoutError(left) from None
        return time.monotonic() - asked_s

    def left(self) -> dict[int, str]:
        """Return the command of each process that is left of the lives, by pid."""
        found = {}
        for process in psutil.Process(self.pid).children(recursive=True):
            with suppress(psutil.NoSuchProcess):
                found[process.pid] = " ".join(process.cmdline())[-200:]
        return found

    async def close(self) -> None:
        """Leave nothing behind, also where the run has failed."""
        if self._living is not None:
            os.kill(self._living, signal.SIGKILL)
        assert self._process.stdin is not None
        self._process.stdin.close()
        await self._process.wait()

    async def _ended(self, code: int, patience_s: float = WAIT_S) -> None:
        said = await self._line(patience_s)
        self._living = None
        assert said == f"gone {code}"

    async def _line(self, patience_s: float) -> str:
        assert self._process.stdout is not None
        async with asyncio.timeout(patience_s):
            return (await self._process.stdout.readline()).decode().strip()
