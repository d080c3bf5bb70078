"""engine.cluster.engine_here: an engine ends in order, whatever has become of it.

A real one behind real Ray: tests/bot/cli/test_roles.py.
"""

from pathlib import Path

import pytest

from engine.cluster import engine_here, ray_engines
from engine.cluster.engine_here import EngineHere
from engine.cluster.fleet import EngineState
from engine.config import EngineConfig
from engine.errors import EngineGone, EngineStartError


class FakeRayEngine:
    """An engine that tells what it was asked."""

    name = "engine-one"

    def __init__(self, told: list[str], states: list[EngineState], error: Exception | None = None) -> None:
        self._told = told
        self._states = states
        self._error = error

    async def state(self) -> EngineState:
        """The next one."""
        return self._states.pop(0)

    async def drain(self) -> None:
        """Let its people go."""
        self._told.append("drain")
        if self._error is not None:
            raise self._error

    async def stop(self) -> None:
        """End."""
        self._told.append("stop")


STARTING = EngineState(False, "starting", False, 0.0)
READY = EngineState(True, "ok", False, 1.0)
FAILED = EngineState(False, "does not start: no memory", True, 0.0)


def engine(
    monkeypatch: pytest.MonkeyPatch, told: list[str], states: list[EngineState], error: Exception | None = None
) -> EngineHere:
    """An engine on a machine whose Ray is not there."""
    monkeypatch.setattr(ray_engines, "join", lambda: told.append("join"))
    monkeypatch.setattr(ray_engines, "here", lambda *_: FakeRayEngine(told, states, error))
    monkeypatch.setattr(ray_engines, "end", lambda: told.append("leave"))
    monkeypatch.setattr(engine_here, "LOOK_EVERY_S", 0.0)
    return EngineHere("engine-one", EngineConfig("m", Path("unused")), "postgresql://heed@localhost/heed")


@pytest.mark.parametrize("error", [None, EngineGone("killed"), TimeoutError()])
async def test_its_people_go_before_it_ends(monkeypatch: pytest.MonkeyPatch, error: Exception | None) -> None:
    """Also if it is gone, or does not come to rest in time."""
    told: list[str] = []
    lines: list[str] = []
    one = engine(monkeypatch, told, [STARTING, STARTING, READY], error)
    await one.start(lines.append)
    await one.stop()
    assert told == ["join", "drain", "stop", "leave"]
    assert lines == ["engine-one: starting", "engine-one is ready"]


async def test_a_start_that_fails_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    """And what was begun is ended."""
    told: list[str] = []
    one = engine(monkeypatch, told, [STARTING, FAILED])
    with pytest.raises(EngineStartError, match="no memory"):
        await one.start()
    await one.stop()
    assert told == ["join", "drain", "stop", "leave"]
