"""A database with several writers: as if each transaction had been alone, and nobody comes in who must not."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, suppress
from typing import Any

import pytest
from sqlmodel import Session

from storage import fencing, leases, migrations, settings
from storage.database import Database
from storage.errors import DatabaseBusy, DatabaseLocked, DriverMissing, LeaseLost
from storage.fencing import Tokens
from storage.learning import versions
from storage.people import people
from storage.sql.member import MemberPostgresServer
from storage.sql.postgres import PostgresServer as PostgresAlone
from tests.patience import PATIENCE_S
from tests.storage.postgres_server import PostgresServer

WRITERS = 3
TURNS = 40


@pytest.fixture
async def members(
    postgres: PostgresServer, name: str, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[list[Database]]:
    """Three members of one cluster, of which none is taken for gone when this process stops within a transaction."""
    monkeypatch.setitem(MemberPostgresServer.writer_settings, "idle_in_transaction_session_timeout", "0")
    async with AsyncExitStack() as stack:
        opened = [_member(postgres, name, f"engine-{n}") for n in range(WRITERS)]
        for database in opened:
            stack.push_async_callback(database.close)
        yield opened


def _member(postgres: PostgresServer, name: str, member: str) -> Database:
    return Database.enter(postgres.url(name), member, Tokens(member))


def _be_impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    for server in (PostgresAlone, MemberPostgresServer):
        monkeypatch.setitem(server.writer_settings, "lock_timeout", "100")


def _add_one(s: Session) -> int:
    number = int(settings.get(s, "n", 0))
    settings.put(s, "n", number + 1)
    return number + 1


async def test_what_each_reads_and_writes_is_as_if_it_had_been_alone(members: list[Database]) -> None:
    """A counter that all of them read and write counts every turn, once: a group that met another is run again."""

    async def count(database: Database) -> list[int]:
        return [await database.write(_add_one) for _ in range(TURNS)]

    found = await asyncio.gather(*(count(database) for database in members))
    assert sorted(number for numbers in found for number in numbers) == list(range(1, WRITERS * TURNS + 1))


async def test_a_work_that_fails_fails_alone(members: list[Database]) -> None:
    """Its error reaches its own caller, also beside works that conflict with another member's."""

    def wrong(_: Session) -> None:
        raise LookupError("no such thing")

    works: list[Any] = [database.write(work) for database in members for work in (_add_one, wrong, _add_one)]
    outcomes = await asyncio.gather(*works, return_exceptions=True)
    assert [type(outcome) for outcome in outcomes] == [int, LookupError, int] * WRITERS


async def test_an_endless_conflict_is_told(members: list[Database]) -> None:
    """A work that somebody else is always faster than ends, with a name, and the next one succeeds."""
    loop = asyncio.get_running_loop()
    num_turns = 0

    def too_slow(s: Session) -> None:
        nonlocal num_turns
        num_turns += 1
        settings.get(s, "n", 0)
        asyncio.run_coroutine_threadsafe(members[1].write(_add_one), loop).result(PATIENCE_S)
        settings.put(s, "n", -1)

    with pytest.raises(DatabaseBusy):
        await members[0].write(too_slow)
    assert num_turns > 10
    assert await members[0].write(_add_one) == num_turns + 1


async def test_who_is_alone_and_a_cluster_never_meet(
    postgres: PostgresServer, name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Any
) -> None:
    """Whoever was there first stays, the other one is refused by name."""
    _be_impatient(monkeypatch)
    alone = Database.open(tmp_path, postgres.url(name))
    with pytest.raises(DatabaseLocked, match="heed that is alone"):
        _member(postgres, name, "engine-1")
    await alone.close()
    member = _member(postgres, name, "engine-1")
    with pytest.raises(DatabaseLocked, match="Another heed"):
        Database.open(tmp_path, postgres.url(name))
    await member.close()
    await Database.open(tmp_path, postgres.url(name)).close()


async def test_of_two_with_one_name_the_later_is_refused(
    postgres: PostgresServer, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A second `engine-1` is told so; once the first has ended the name is free."""
    first = _member(postgres, name, "engine-1")
    _be_impatient(monkeypatch)
    with pytest.raises(DatabaseLocked, match="is called engine-1"):
        _member(postgres, name, "engine-1")
    await first.close()
    await _member(postgres, name, "engine-1").close()


async def test_members_that_come_together_make_one_schema(postgres: PostgresServer, name: str) -> None:
    """On an empty database one of them makes the tables, and all of them come in, as an engine does: at last."""

    async def come(member: str) -> Database:
        """Come in, however long another one takes with the tables."""
        async with asyncio.timeout(PATIENCE_S):
            while True:
                with suppress(DatabaseLocked):
                    return await asyncio.to_thread(_member, postgres, name, member)

    came = await asyncio.gather(*(come(f"engine-{n}") for n in range(WRITERS)))
    assert postgres.tell(name, "SELECT version_num FROM alembic_version") == [migrations.head()]
    for database in came:
        await database.close()


async def test_nobody_changes_the_schema_under_the_others(
    postgres: PostgresServer, name: str, members: list[Database], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A member with a newer schema waits for those with the old one to end."""
    _be_impatient(monkeypatch)
    monkeypatch.setattr("storage.migrations.head", lambda: "9999")
    with pytest.raises(DatabaseLocked):
        _member(postgres, name, "engine-new")
    assert await members[0].write(_add_one) == 1


async def test_the_holder_of_a_lease_writes_and_the_others_are_refused(members: list[Database]) -> None:
    """The sessions of a member carry its tokens."""
    ana = (await members[0].write(lambda s: people.resolve(s, "http", "ana"))).id
    tokens = Tokens("holder")
    members[1]._writer._info[fencing.KEY] = tokens
    lease = await members[1].write(lambda s: leases.take(s, fencing.person(ana), tokens.owner, 60.0, ana))
    tokens.keep(lease.name, lease.token)
    assert (await members[1].write(lambda s: versions.allocate(s, ana, 0, "pocket", None, None))).number == 1
    with pytest.raises(LeaseLost):
        await members[0].write(lambda s: versions.allocate(s, ana, 0, "pocket", None, None))


def test_a_cluster_needs_a_server() -> None:
    """SQLite has one writer, so it is refused."""
    with pytest.raises(DriverMissing, match="PostgreSQL"):
        Database.enter("sqlite:///heed.db", "engine-1", Tokens("engine-1"))
