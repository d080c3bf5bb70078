"""One engine on this machine, among those of a cluster whose Ray runs here already; it is emptied before it ends."""

import asyncio
from contextlib import suppress

from engine.cluster import ray_engines
from engine.cluster.ray_engines import RayEngine
from engine.config import EngineConfig
from engine.engine import Progress
from engine.errors import EngineError, EngineStartError

LOOK_EVERY_S = 0.5
DRAIN_S = 30.0  # for answers and lessons that run when the engine is to end


class EngineHere:
    """The engine of that name: started, or found where an earlier process left it."""

    def __init__(self, name: str, config: EngineConfig, database_url: str) -> None:
        self.name = name
        self._config = config
        self._database_url = database_url
        self._engine: RayEngine | None = None

    async def start(self, progress: Progress = lambda _line: None) -> None:
        """Return once it answers. Raises EngineStartError."""
        await asyncio.to_thread(ray_engines.join)
        ray_engines.take_signals_back()
        self._engine = await asyncio.to_thread(ray_engines.here, self.name, self._config, self._database_url)
        await ready(self._engine, progress)

    async def stop(self) -> None:
        """Let its people go to the others, what runs for them first, and end its process."""
        if self._engine is not None:
            with suppress(EngineError, TimeoutError):  # named edges: it is gone, or what runs is done again elsewhere
                async with asyncio.timeout(DRAIN_S):
                    await self._engine.drain()
            await self._engine.stop()
        await asyncio.to_thread(ray_engines.end)


async def ready(engine: RayEngine, progress: Progress) -> None:
    """Wait until an engine answers, and tell how far its start is. Raises EngineStartError."""
    told = ""
    while not (state := await engine.state()).is_ready:
        if state.has_failed:
            raise EngineStartError(f"{engine.name} {state.line}")
        if state.line != told:
            told = state.line
            progress(f"{engine.name}: {told}")
        await asyncio.sleep(LOOK_EVERY_S)
    progress(f"{engine.name} is ready")
