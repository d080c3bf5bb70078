"""The engine of a gateway with all engines on its own machine: they start and end with it."""

import asyncio
import tempfile
from dataclasses import replace
from functools import partial

from engine.cluster import cores, ray_engines
from engine.cluster.engine_here import ready
from engine.cluster.fleet import Fleet
from engine.cluster.ray_engines import RayEngine
from engine.cluster.remote_engine import RemoteEngine
from engine.config import EngineConfig
from engine.engine import Progress
from storage.database import Database

ENGINES_FOLDER = "engines"  # below the data directory, a folder for each engine


class EnginesHere(RemoteEngine):
    """See RemoteEngine; `start` raises EngineStartError where an engine does not start."""

    def __init__(
        self, config: EngineConfig, database: Database, fleet: Fleet, database_url: str, num_engines: int
    ) -> None:
        super().__init__(config, database, fleet)
        self._database_url = database_url
        self._names = [f"engine-{number}" for number in range(1, num_engines + 1)]
        self._engines: list[RayEngine] = []
        self._folder: tempfile.TemporaryDirectory[str] | None = (
            None  # Ray's, for our eyes only; its paths have to be short
        )

    async def start(self, progress: Progress = lambda _line: None) -> None:
        """Start every engine, and return once all are ready."""
        self._folder = await asyncio.to_thread(
            tempfile.TemporaryDirectory, prefix="heed-ray-", ignore_cleanup_errors=True
        )
        await asyncio.to_thread(ray_engines.begin, self._folder.name)
        ray_engines.take_signals_back()
        allowed = cores.allowed_here()
        for place, name in enumerate(self._names):
            folder = (self.config.data_dir / ENGINES_FOLDER / name).resolve()
            own = replace(self.config, data_dir=folder)
            environment = cores.one_of(place, len(self._names), allowed)
            started = partial(ray_engines.started, name, own, self._database_url, environment)
            self._engines.append(await asyncio.to_thread(started))
        await asyncio.gather(*(ready(engine, progress) for engine in self._engines))
        await super().start(progress)

    async def stop(self) -> None:
        """End the engines, and Ray with them."""
        await super().stop()
        await asyncio.gather(*(engine.stop() for engine in self._engines), return_exceptions=True)
        await asyncio.to_thread(ray_engines.end)
        if self._folder is not None:
            await asyncio.to_thread(self._folder.cleanup)
