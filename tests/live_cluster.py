"""A heed on several machines, all of which are this one: a Ray of its own, engines and gateways as processes each.

As an operator starts it: `ray start`, then `heed run --role engine` and `heed run --role gateway`, one database, one
object store.
"""

import asyncio
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path

from evals.ports import reserved_port
from evals.server import START_TIMEOUT_S, HeedServer
from tests.engine.pocket_model import pocket_folder
from tests.patience import PATIENCE_S

SECRET = "ab" * 32
RAY_BYTES = "100000000"
_PROGRAMS = Path(sys.executable).parent


class EngineUnit:
    """One `heed run --role engine`."""

    def __init__(self, name: str, folder: Path, settings: Mapping[str, str], program: str) -> None:
        self.name = f"engine-{name}"
        self._log = folder / f"{name}.log"
        with self._log.open("wb") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-m", program, "run", "--role", "engine", "--name", name, "--no-terminal"],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                env={**os.environ, **settings, "HEED_DATA_DIR": str(folder / name)},
            )  # fmt: skip

    @property
    def lines(self) -> list[str]:
        """The lines it has written."""
        return self._log.read_text(errors="replace").splitlines()

    async def until_ready(self) -> None:
        """Wait until its engine answers, which takes minutes where several start on few cores."""
        async with asyncio.timeout(START_TIMEOUT_S):
            while not any(f"{self.name} is ready" in line for line in self.lines):
                assert self.process.poll() is None, self.lines
                await asyncio.sleep(0.05)

    async def end(self) -> int:
        """End it as an operator does; its exit code."""
        self.process.send_signal(signal.SIGTERM)
        return await asyncio.to_thread(self.process.wait, PATIENCE_S)


class LiveCluster:
    """Ray, engines and gateways by name; all of them end with it."""

    def __init__(
        self,
        folder: Path,
        database_url: str,
        settings: Mapping[str, str],
        own: Mapping[str, Mapping[str, str]] = {},
        engine_program: str = "bot",
    ) -> None:
        """`own` has settings of single parts, by name; `engine_program` is the module that runs an engine."""
        self.engines: dict[str, EngineUnit] = {}
        self.gateways: dict[str, HeedServer] = {}
        self._folder = folder
        self._held = ExitStack()
        self._port = self._held.enter_context(reserved_port())
        self._ray_folder = tempfile.TemporaryDirectory(prefix="heed-ray-", ignore_cleanup_errors=True)
        self._settings = {
            "HEED_MODEL": str(pocket_folder()),
            "HEED_DATABASE_URL": database_url,
            "HEED_OBJECT_STORE": f"file://{folder}/objects",
            "RAY_ADDRESS": f"127.0.0.1:{self._port}",
            "RAY_AUTH_MODE": "token",
            "RAY_AUTH_TOKEN": SECRET,
            "RAY_USAGE_STATS_ENABLED": "0",
            **settings,
        }
        self._own = own
        self._engine_program = engine_program
        self._ray: subprocess.Popen[bytes] | None = None

    @property
    def ray_pid(self) -> int:
        """The process of which all of Ray's are children."""
        assert self._ray is not None
        return self._ray.pid

    async def start(self, engines: tuple[str, ...], gateways: tuple[str, ...]) -> None:
        """Start it, and return once every part is ready."""
        self._start_ray()
        await self._until_ray_listens()
        for name in engines:
            self.engines[name] = EngineUnit(name, self._folder, self._of(name), self._engine_program)
        await asyncio.gather(*(engine.until_ready() for engine in self.engines.values()))
        await asyncio.gather(*(self.start_gateway(name) for name in gateways))

    async def start_gateway(self, name: str) -> None:
        """Start a gateway, also one that was there before."""
        server = HeedServer(self._of(name), self._folder / name)
        server.program = ("bot", "run", "--role", "gateway", "--name", name)
        self.gateways[name] = server
        await server.start()

    async def stop(self) -> None:
        """End everything."""
        await asyncio.gather(*(server.end() for server in self.gateways.values()))
        for engine in self.engines.values():
            if engine.process.poll() is None:
                await engine.end()
        if self._ray is not None:
            self._ray.terminate()
            await asyncio.to_thread(self._ray.wait)
        self._held.close()
        self._ray_folder.cleanup()

    def _of(self, name: str) -> dict[str, str]:
        return {**self._settings, **self._own.get(name, {})}

    def _start_ray(self) -> None:
        """Start Ray's head in the foreground of a process of ours."""
        self._ray = subprocess.Popen(
            [
                _PROGRAMS / "ray", "start", "--head", "--block", "--node-ip-address=127.0.0.1", f"--port={self._port}",
                "--include-dashboard=false", f"--temp-dir={self._ray_folder.name}", "--num-cpus=1",
                f"--object-store-memory={RAY_BYTES}", "--disable-usage-stats",
            ],
            env={**os.environ, **self._settings}, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
        )  # fmt: skip

    async def _until_ray_listens(self) -> None:
        async with asyncio.timeout(PATIENCE_S):
            while True:
                try:
                    _, writer = await asyncio.open_connection("127.0.0.1", self._port)
                except OSError:
                    await asyncio.sleep(0.1)
                else:
                    writer.close()
                    return
