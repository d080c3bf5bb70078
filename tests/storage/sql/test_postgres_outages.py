"""A server that goes away: nothing acknowledged is lost, nothing is acknowledged that is not kept, work goes on."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy.dialects.postgresql.asyncpg import PGDialect_asyncpg
from sqlmodel import Session

from storage import settings
from storage.database import Database
from storage.errors import DatabaseLost, StorageError
from storage.sql import postgres
from tests.patience import PATIENCE_S, until
from tests.storage import postgres_server
from tests.storage.postgres_server import PostgresServer
from tests.storage.stored import all_ids

NUM_OUTAGES = 4
WRITERS = 4


@pytest.fixture
async def database(postgres: PostgresServer, name: str, tmp_path: Path) -> AsyncIterator[Database]:
    """An open one."""
    database = Database.open(tmp_path, postgres.url(name))
    yield database
    await database.close()


@pytest.fixture
def own_server() -> Iterator[PostgresServer]:
    """A server that the test may end."""
    with postgres_server.running() as server:
        yield server


def _put(key: str, value: object = True) -> Any:
    return lambda s: settings.put(s, key, value)


async def test_a_connection_lost_in_a_group_keeps_nothing_of_it(
    postgres: PostgresServer, name: str, database: Database
) -> None:
    """Every writer of the group hears DatabaseLost, none is acknowledged, and the next write succeeds."""

    def lose(s: Session) -> None:
        pid = s.connection().exec_driver_sql("SELECT pg_backend_pid()").scalar()
        postgres.tell(name, f"SELECT pg_terminate_backend({pid}, 60000)")
        s.connection().exec_driver_sql("SELECT 1")

    lost = [database.write(work) for work in (_put("before"), lose)]
    results = await asyncio.gather(*lost, return_exceptions=True)
    assert isinstance(results[1], DatabaseLost)
    kept = await database.read(lambda s: settings.get(s, "before"))
    assert (kept is True) == (results[0] is None), "acknowledged and kept are the same"
    await database.write(_put("after"))
    assert await database.read(lambda s: settings.get(s, "after")) is True


def _lose(monkeypatch: pytest.MonkeyPatch, *, is_kept: bool) -> None:
    """The next commit's connection breaks before, or after, the server has committed."""
    commit = PGDialect_asyncpg.do_commit

    def lost(self: PGDialect_asyncpg, connection: Any) -> None:
        monkeypatch.undo()
        if is_kept:
            commit(self, connection)
        raise ConnectionResetError("gone")

    monkeypatch.setattr(PGDialect_asyncpg, "do_commit", lost)


@pytest.mark.parametrize("is_kept", [True, False])
async def test_a_commit_in_doubt_is_asked_after(
    database: Database, monkeypatch: pytest.MonkeyPatch, is_kept: bool
) -> None:
    """If the connection breaks during a commit, exactly the acknowledged rows are kept."""
    await database.write(_put("before"))
    _lose(monkeypatch, is_kept=is_kept)
    results = await asyncio.gather(database.write(_put("doubtful")), return_exceptions=True)
    assert await database.read(lambda s: settings.get(s, "doubtful")) is (True if is_kept else None)
    assert (results == [None]) is is_kept
    assert is_kept or isinstance(results[0], DatabaseLost)


@pytest.mark.crash
async def test_a_commit_that_nobody_can_tell_of_is_named(
    own_server: PostgresServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If the server stays away the writer gets an error of its own, and later writes go on."""
    monkeypatch.setattr(postgres, "DOUBT_S", 0.1)
    database = await asyncio.to_thread(Database.open, tmp_path, own_server.url("postgres"))
    await database.write(_put("before"))

    def end(self: PGDialect_asyncpg, connection: Any) -> None:
        own_server.stop()
        commit(self, connection)

    commit = PGDialect_asyncpg.do_commit
    monkeypatch.setattr(PGDialect_asyncpg, "do_commit", end)
    with pytest.raises(DatabaseLost, match="whether the last write was kept"):
        await database.write(_put("doubtful"))
    monkeypatch.undo()
    await asyncio.to_thread(own_server.start)
    await _until_written(database, "after")
    await database.close()


async def _until_written(database: Database, key: str) -> None:
    """Try a write until it is acknowledged, as the inbox does."""
    async with asyncio.timeout(PATIENCE_S):
        while True:
            try:
                return await database.write(_put(key))
            except StorageError as error:
                if not error.retryable:
                    raise
            await asyncio.sleep(0.02)


async def _write_on(database: Database, writer: int, acknowledged: list[str], stop: asyncio.Event) -> None:
    """One write after another, each noted once it is acknowledged."""
    n = 0
    while not stop.is_set():
        key = f"{writer}-{n}"
        await _until_written(database, key)
        acknowledged.append(key)
        n += 1


@pytest.mark.crash
@pytest.mark.parametrize("end", ["kill", "stop"])
async def test_nothing_acknowledged_is_lost_where_the_server_dies(
    own_server: PostgresServer, tmp_path: Path, end: str
) -> None:
    """Killed or stopped in the middle of writes, four times: each acknowledged write is there, and work goes on."""
    await asyncio.to_thread(own_server.stop, "fast")
    await asyncio.to_thread(own_server.start, "")  # with fsync
    database = await asyncio.to_thread(Database.open, tmp_path, own_server.url("postgres"))
    acknowledged: list[str] = []
    stop = asyncio.Event()
    async with asyncio.TaskGroup() as tasks:
        for writer in range(WRITERS):
            tasks.create_task(_write_on(database, writer, acknowledged, stop))
        for _ in range(NUM_OUTAGES):
            wanted = len(acknowledged) + 10
            await until(lambda wanted=wanted: len(acknowledged) >= wanted)
            await asyncio.to_thread(own_server.kill if end == "kill" else own_server.stop)
            with pytest.raises(DatabaseLost, match="heed connects again"):
                await database.read(all_ids)
            await asyncio.to_thread(own_server.start, "")
        await _until_written(database, "last")
        stop.set()
    kept = await database.read(lambda s: {key for key in acknowledged if settings.get(s, key)})
    await database.close()
    assert kept == set(acknowledged)
    assert len(acknowledged) >= 10 * NUM_OUTAGES
