"""One engine of a cluster in a process of its own, and the calls that reach it from gateways.

The first question about its state starts it; so a process that Ray started again comes back by itself. One that does
not start ends after a while, and Ray makes it again.
"""

import asyncio
import logging
import os
import platform
from collections.abc import AsyncGenerator
from dataclasses import dataclass, replace
from importlib.metadata import version
from typing import Any

from engine.cluster.cluster_engine import ClusterEngine
from engine.cluster.fleet import LOOK_EVERY_S, EngineIdentity, EngineState
from engine.cluster.quiet_start import quiet_start
from engine.config import EngineConfig
from engine.engine import Engine
from engine.requests import Delta, GenerateRequest
from storage.database import Database
from storage.errors import DatabaseLocked
from storage.fencing import Tokens
from storage.lease_keeper import DURATION_S
from storage.tables import new_id

logger = logging.getLogger(__name__)

LOCKED_S = (1.0, 2.0, 5.0, 10.0)  # seconds between tries while the database is another's alone
AGAIN_S = 30.0  # that a start that failed can be asked why
CALLS = frozenset(name for name in vars(Engine) if not name.startswith("_")) | {ClusterEngine.take_up.__name__}


@dataclass(frozen=True)
class EngineSettings:
    """The settings of one engine."""

    name: str
    config: EngineConfig  # with a data directory of its own
    database_url: str
    weight: float = 1.0
    lease_s: float = DURATION_S


class EngineProcess:
    """The engine and its database."""

    def __init__(self, settings: EngineSettings) -> None:
        self._settings = settings
        self._weight = settings.weight
        self._stops: dict[str, asyncio.Event] = {}  # by answer that is being written
        self._is_silent = asyncio.Event()  # while there is none
        self._is_silent.set()
        self._starting: asyncio.Task[None] | None = None
        self._line, self._has_failed = "starting", False
        self._ending: asyncio.TimerHandle | None = None
        self._database: Database | None = None
        self._engine: ClusterEngine | None = None

    async def state(self) -> EngineState:
        """Return how it is just now."""
        if self._starting is None:
            self._starting = asyncio.create_task(self._start(), name="heed-engine")
        engine = self._engine
        if engine is None or not engine.is_ready:
            return EngineState(False, self._line, self._has_failed, 0.0)
        (load,) = engine.loads().values()
        return EngineState(True, "ok", False, self._weight, load)

    async def identity(self) -> EngineIdentity:
        """Return who this is; only once it is ready."""
        engine, model = self._ready, self._ready.calibration.fingerprint
        how = (engine.config, engine.sampling, engine.skills, engine.learning)
        return EngineIdentity(version("heed"), model, *how, platform.node(), os.getpid())

    async def call(self, method: str, arguments: tuple[Any, ...]) -> Any:
        """Call a method of the engine by its name. Raises what that raises."""
        if method not in CALLS:
            raise AttributeError(f"an engine has no method {method!r}")
        return await getattr(self._ready, method)(*arguments)

    async def generate(self, request: GenerateRequest, stop_id: str) -> AsyncGenerator[Delta, None]:
        """Stream an answer, until `stop_generating` is called with `stop_id`."""
        stop = self._stops.setdefault(stop_id, asyncio.Event())
        self._is_silent.clear()
        try:
            async for delta in self._ready.generate(replace(request, stop=stop)):
                yield delta
        finally:
            self._stops.pop(stop_id, None)
            if not self._stops:
                self._is_silent.set()

    async def stop_generating(self, stop_id: str) -> None:
        """End an answer with what was written; harmless if it has ended."""
        if stop_id in self._stops:
            self._stops[stop_id].set()

    async def drain(self) -> None:
        """Take no new people, and let those go that are here once nothing runs for them; however long that takes."""
        self._weight = 0.0
        if self._engine is None or not self._engine.is_ready:
            return  # it has none yet
        await asyncio.sleep(2 * LOOK_EVERY_S)  # until every gateway has seen it
        await self._is_silent.wait()
        await self._ready.settled()
        await self._ready.leases.release()

    async def stop(self) -> None:
        """End the engine; its people are free at once."""
        self._weight = 0.0
        if self._ending is not None:
            self._ending.cancel()
        if self._engine is not None:
            await self._engine.stop()
        if self._database is not None:
            await self._database.close()

    @property
    def _ready(self) -> ClusterEngine:
        assert self._engine is not None, "the engine is being started"
        return self._engine

    async def _start(self) -> None:
        settings = self._settings
        tokens = Tokens(f"{settings.name}/{new_id()}")  # a process that comes back is another owner
        try:
            settings.config.data_dir.mkdir(parents=True, exist_ok=True, mode=0o700)
            self._database = await self._entered(tokens)
            self._engine = ClusterEngine(settings.config, self._database, tokens, settings.lease_s)
            with quiet_start():
                await self._engine.start(self._say)
        except Exception as error:  # a named edge: whoever asks how it is reads it
            logger.exception("%s does not start", settings.name)
            self._line, self._has_failed = f"does not start: {error}", True
            self._ending = asyncio.get_running_loop().call_later(AGAIN_S, os._exit, 1)

    async def _entered(self, tokens: Tokens) -> Database:
        """Enter the database; one that is brought up to date, or has a member of this name, is waited for."""
        for wait_s in (*LOCKED_S, None):
            try:
                return await asyncio.to_thread(Database.enter, self._settings.database_url, self._settings.name, tokens)
            except DatabaseLocked as error:
                if wait_s is None:
                    raise
                self._say(f"waiting: {error}")
                await asyncio.sleep(wait_s)
        raise AssertionError("the last time it raises")

    def _say(self, line: str) -> None:
        self._line = line
        logger.info("%s: %s", self._settings.name, line)
