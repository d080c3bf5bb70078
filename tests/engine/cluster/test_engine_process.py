"""engine.cluster.engine_process: it starts when it is asked how it is, and says why where it cannot."""

import asyncio
from pathlib import Path

import pytest

from engine.cluster import engine_process
from engine.cluster.engine_process import CALLS, EngineProcess, EngineSettings
from engine.config import EngineConfig
from storage.database import Database
from storage.errors import DatabaseLocked
from storage.fencing import Tokens
from tests.patience import PATIENCE_S, until
from tests.storage.postgres_server import PostgresServer


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


@pytest.mark.parametrize("fault", [OSError("no space left on device"), DatabaseLocked("another has it")])
async def test_a_process_whose_start_failed_ends_after_a_while(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fault: Exception
) -> None:
    """Whatever the reason, so that Ray makes it again; not one that is stopped before."""

    async def fail(_engine: EngineProcess, _tokens: Tokens) -> Database:
        raise fault

    ended: list[int] = []
    monkeypatch.setattr(EngineProcess, "_entered", fail)
    monkeypatch.setattr(engine_process, "AGAIN_S", 0.05)
    monkeypatch.setattr(engine_process.os, "_exit", ended.append)
    engine, stopped = process(tmp_path), process(tmp_path)
    for one in (engine, stopped):
        await one.state()
        assert one._starting is not None
        await one._starting
        assert (await one.state()).line == f"does not start: {fault}"
    await stopped.stop()
    await until(lambda: ended)
    await asyncio.sleep(0.1)
    assert ended == [1]


async def test_only_calls_of_an_engine_can_be_made(tmp_path: Path) -> None:
    """No other attribute of it, whatever a gateway asks for."""
    for name in ("_host", "leases", "__init__", "config"):
        with pytest.raises(AttributeError, match="no method"):
            await process(tmp_path).call(name, ())
    assert {"learn", "undo", "forget"} <= CALLS


async def test_ending_an_answer_that_has_ended_is_harmless(tmp_path: Path) -> None:
    """Its end and the wish for it may cross."""
    await process(tmp_path).stop_generating("gone")


async def test_an_engine_that_is_not_there_yet_is_empty(tmp_path: Path) -> None:
    """To end it is all that is left."""
    engine = process(tmp_path)
    async with asyncio.timeout(PATIENCE_S):
        await engine.drain()


async def test_a_database_that_is_another_members_for_a_moment_is_waited_for(
    postgres: PostgresServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And whoever asks how it is reads for what."""
    monkeypatch.setattr(engine_process, "LOCKED_S", (0.1, 0.1, 0.1))
    with postgres.database() as name:
        url = postgres.url(name)
        namesake = await asyncio.to_thread(Database.enter, url, "one", Tokens("one/0"))
        engine = process(tmp_path, url)
        entering = asyncio.create_task(engine._entered(Tokens("one/1")))
        async with asyncio.timeout(PATIENCE_S):
            while not engine._line.startswith("waiting: "):  # noqa: ASYNC110  it is asked, as gateways do
                await asyncio.sleep(0.01)
            await namesake.close()
            await (await entering).close()
