"""The engine of a gateway whose engines are started by themselves, on this machine or others: it finds them by Ray."""

import asyncio

from engine.cluster import ray_engines
from engine.cluster.remote_engine import RemoteEngine
from engine.engine import Progress


class EnginesElsewhere(RemoteEngine):
    """See RemoteEngine; `start` raises EngineStartError where no Ray runs on this machine."""

    async def start(self, progress: Progress = lambda _line: None) -> None:
        """Join Ray, and return once an engine answers."""
        await asyncio.to_thread(ray_engines.join)
        ray_engines.take_signals_back()
        await super().start(progress)

    async def stop(self) -> None:
        """Leave Ray; the engines go on."""
        await super().stop()
        await asyncio.to_thread(ray_engines.end)
