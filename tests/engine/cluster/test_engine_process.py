"""engine.cluster.engine_process: it starts when it is asked how it is, and says why where it cannot."""

import asyncio
from pathlib import Path

import pytest

from engine.cluster.engine_process import CALLS, EngineProcess, EngineSettings
from engine.config import EngineConfig
from tests.patience import PATIENCE_S


def process(tmp_path: Path, url: str = "postgresql://heed@127.0.0.1:1/none") -> EngineProcess:
    """One that has not been asked for anything."""
    return EngineProcess(EngineSettings("one", EngineConfig("m", tmp_path / "one"), url))


async def test_a_start_that_fails_is_told_to_whoever_asks(tmp_path: Path) -> None:
    """Here no database is there; the process goes on, so that the reason can be read."""
    engine = process(tmp_path)
    first = await engine.state()
    assert (first.is_ready, first.has_failed, first.weight) == (False, False, 0.0)
    async with asyncio.timeout(PATIENCE_S):
        while not (state := await engine.state()).has_failed:  # noqa: ASYNC110  it is asked, as gateways do
            await asyncio.sleep(0.01)
    assert state.line.startswith("does not start: ")
    await engine.stop()


async def test_only_calls_of_an_engine_can_be_made(tmp_path: Path) -> None:
    """No other attribute of it, whatever a gateway asks for."""
    for name in ("_host", "leases", "__init__", "config"):
        with pytest.raises(AttributeError, match="no method"):
            await process(tmp_path).call(name, ())
    assert {"learn", "undo", "forget"} <= CALLS


async def test_ending_an_answer_that_has_ended_is_harmless(tmp_path: Path) -> None:
    """Its end and the wish for it may cross."""
    await process(tmp_path).stop_generating("gone")
