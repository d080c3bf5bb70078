"""engine.cluster.ray_engines: what went wrong in another process is told as it was there.

Real engines behind real Ray: tests/engine/cluster/test_engines_here.py.
"""

import asyncio
from typing import Any

import pytest
from ray.exceptions import ActorDiedError, RayTaskError

from engine.cluster.ray_engines import RayEngine
from engine.errors import EngineGone, NothingToUndo


class FakeActor:
    """An actor each of whose methods ends with the same error."""

    def __init__(self, error: Exception) -> None:
        self._error = error

    def __getattr__(self, _name: str) -> Any:
        return self

    def remote(self, *_arguments: Any) -> "asyncio.Future[Any]":
        """Call it."""
        ended: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        ended.set_exception(self._error)
        return ended


async def test_an_error_of_the_engine_is_raised_as_itself() -> None:
    """With its class, which the gateway's callers know."""
    cause = NothingToUndo("nothing is there to undo")
    engine = RayEngine("one", FakeActor(RayTaskError("call", "a traceback", cause)))
    with pytest.raises(NothingToUndo):
        await engine.call("undo", "ana")


async def test_a_process_that_ended_is_gone() -> None:
    """Whatever was asked of it."""
    engine = RayEngine("one", FakeActor(ActorDiedError()))
    for asked in (engine.state, engine.identity, engine.drain):
        with pytest.raises(EngineGone):
            await asked()
