"""PostgreSQL: one heed per database, and names for what goes wrong."""

import asyncio
import re
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import make_url
from sqlalchemy.exc import DBAPIError
from sqlmodel import Session

from storage import migrations, settings
from storage.database import Database, schema_at
from storage.errors import (
    ConstraintViolated,
    DatabaseBusy,
    DatabaseCorrupt,
    DatabaseLocked,
    DatabaseMissing,
    DatabaseRefused,
    DriverMissing,
    NotStorable,
    SchemaUnknown,
    StorageBroken,
    StorageError,
    StorageFull,
    WriteInRead,
)
from storage.people import people
from storage.sql import postgres
from tests.storage.postgres_server import PASSWORD, PostgresServer
from tests.storage.stored import all_ids


@pytest.fixture
async def database(postgres: PostgresServer, name: str, tmp_path: Path) -> AsyncIterator[Database]:
    """An open one."""
    database = Database.open(tmp_path, postgres.url(name))
    yield database
    await database.close()


def _put(key: str, value: object = True) -> Any:
    return lambda s: settings.put(s, key, value)


async def test_a_first_start_makes_the_tables_and_the_next_one_finds_them(
    postgres: PostgresServer, name: str, tmp_path: Path
) -> None:
    """The schema is this heed's, and what was written is there after a restart."""
    for n in range(2):
        database = Database.open(tmp_path, postgres.url(name))
        assert await database.read(lambda s: settings.get(s, "n", 0)) == n
        await database.write(_put("n", 1))
        await database.close()
    assert postgres.tell(name, "SELECT version_num FROM alembic_version") == [migrations.head()]


async def test_an_old_schema_is_brought_up_to_date(postgres: PostgresServer, name: str, tmp_path: Path) -> None:
    """Rows that an earlier heed wrote are kept."""
    await Database.open(tmp_path, postgres.url(name)).close()
    postgres.tell(
        name,
        "DROP TABLE agent_work, workspace_note, lease, api_key, admin_view; DROP INDEX ix_completion_chat_id_user_id",
    )
    postgres.tell(name, "ALTER TABLE chat DROP COLUMN title")
    postgres.tell(name, "ALTER TABLE inbox DROP COLUMN server")
    postgres.tell(name, "ALTER TABLE update_run DROP COLUMN curves, DROP COLUMN notes")
    new = ("scope", "reading", "reading_margin", "is_unsure", "context")
    postgres.tell(name, f"ALTER TABLE feedback {', '.join(f'DROP COLUMN {column}' for column in new)}")
    postgres.tell(name, "UPDATE alembic_version SET version_num = '0009'")
    schema = schema_at(postgres.url(name))
    assert schema is not None
    assert (schema.revision, schema.is_old) == ("0009", True)
    postgres.tell(name, "INSERT INTO setting VALUES ('old', '1')")
    database = Database.open(tmp_path, postgres.url(name))
    assert await database.read(lambda s: settings.get(s, "old")) == 1
    await database.close()
    assert "curves" in "".join(postgres.tell(name, "SELECT column_name FROM information_schema.columns"))


@pytest.mark.parametrize(
    ("script", "words"),
    [
        ("CREATE TABLE alembic_version (version_num text); INSERT INTO alembic_version VALUES ('9999')", "newer than"),
        ('CREATE TABLE "order" (id int)', "heed did not make"),
    ],
)
def test_a_schema_of_somebody_else_is_refused(
    postgres: PostgresServer, name: str, tmp_path: Path, script: str, words: str
) -> None:
    """A newer heed's, or no heed's at all; opening and looking say so alike."""
    postgres.tell(name, script)
    with pytest.raises(SchemaUnknown, match=words):
        Database.open(tmp_path, postgres.url(name))
    with pytest.raises(SchemaUnknown, match=words):
        schema_at(postgres.url(name))


def test_looking_changes_nothing(postgres: PostgresServer, name: str) -> None:
    """An empty database is empty afterwards; SQLite has no such look."""
    schema = schema_at(postgres.url(name))
    assert schema is not None
    assert (name in schema.place, schema.revision, schema.is_old) == (True, None, False)
    assert postgres.tell(name, "SELECT tablename FROM pg_tables WHERE schemaname = 'public'") == []
    assert schema_at("sqlite://") is None


def _wrong(postgres: PostgresServer, what: str) -> str:
    urls = {
        "no server": "postgresql://heed@127.0.0.1:1/heed",
        "no folder": "postgresql://heed@/heed?host=/nowhere",
        "no database": postgres.url("nosuchdatabase"),
        "no user": postgres.url("postgres", "nobody"),
        "wrong password": postgres.url("postgres", "guarded:secret-but-wrong"),
    }
    return urls[what]


@pytest.mark.parametrize(
    ("what", "kind", "words"),
    [
        ("no server", DatabaseMissing, "heed on 127.0.0.1.*Start the server"),
        ("no folder", DatabaseMissing, "/nowhere.*Start the server"),
        ("no database", DatabaseMissing, "nosuchdatabase.*make the database"),
        ("no user", DatabaseRefused, "nobody.*Correct the user"),
        ("wrong password", DatabaseRefused, "password authentication failed.*Correct the user and the password"),
    ],
)
def test_what_is_wrong_with_a_url_is_named(
    postgres: PostgresServer, tmp_path: Path, what: str, kind: type[StorageError], words: str
) -> None:
    """With the remedy, and never with the password."""
    for look in (schema_at, lambda url: Database.open(tmp_path, url)):
        with pytest.raises(kind, match=words) as caught:
            look(_wrong(postgres, what))
        assert "secret" not in str(caught.value)


def test_a_user_who_may_make_no_tables_is_named(postgres: PostgresServer, name: str, tmp_path: Path) -> None:
    """The right password is not enough."""
    with pytest.raises(DatabaseRefused, match="let that user make tables"):
        Database.open(tmp_path, postgres.url(name, f"guarded:{PASSWORD}"))


@pytest.mark.parametrize("url", ["mysql://x/y", "postgresql+psycopg://x/y", "postgresql://x/y?nosuchoption=1"])
def test_a_url_of_something_else_is_named(tmp_path: Path, url: str) -> None:
    """Another database, another driver, or an option that the driver does not know."""
    with pytest.raises(DriverMissing):
        Database.open(tmp_path, url)


def test_urls_may_be_written_as_others_write_them() -> None:
    """Providers begin them with postgres: and say sslmode, which the driver calls ssl."""
    address = postgres._with_driver(make_url("postgres://heed@db.example/heed?sslmode=require"))
    assert str(address) == "postgresql+asyncpg://heed@db.example/heed?ssl=require"


async def test_two_heeds_do_not_share_a_database(
    postgres: PostgresServer, name: str, database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second is refused by name and harms nobody; once the first has stopped it may come."""
    monkeypatch.setattr("storage.sql.postgres.LOCK_TIMEOUT_MS", 100)
    with pytest.raises(DatabaseLocked, match=r"Another heed uses .*HEED_DATABASE_URL"):
        Database.open(tmp_path, postgres.url(name))
    await database.write(_put("n"))
    await database.close()
    await Database.open(tmp_path, postgres.url(name)).close()


async def test_who_lost_the_lock_writes_no_more(
    postgres: PostgresServer, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If another heed took the database while the connection was away, each write of the first one fails by name."""
    monkeypatch.setattr("storage.sql.postgres.LOCK_TIMEOUT_MS", 100)
    first = Database.open(tmp_path, postgres.url(name))
    postgres.tell(name, "SELECT pg_terminate_backend(pid, 60000) FROM pg_stat_activity WHERE application_name = 'heed'")
    second = Database.open(tmp_path, postgres.url(name))
    for _ in range(2):
        with pytest.raises(DatabaseLocked):
            await first.write(_put("first"))
    await second.write(_put("second"))
    assert await first.read(lambda s: (settings.get(s, "first"), settings.get(s, "second"))) == (None, True)
    await second.close()
    await first.write(_put("first"))
    await first.close()


async def test_commits_are_on_disk_also_where_the_role_says_otherwise(
    postgres: PostgresServer, name: str, tmp_path: Path
) -> None:
    """synchronous_commit is heed's own choice."""
    postgres.tell(name, f"ALTER DATABASE {name} SET synchronous_commit = off")
    database = Database.open(tmp_path, postgres.url(name))

    def setting(s: Session) -> object:
        return s.connection().exec_driver_sql("SHOW synchronous_commit").scalar()

    assert await database.write(setting) == "on"
    await database.close()


@pytest.mark.parametrize("value", ["a\0b", "\ud800"])
async def test_text_that_the_server_cannot_hold_is_refused_by_name(database: Database, value: str) -> None:
    """NUL and lone surrogates are refused by name; nothing else of the group is harmed."""

    def work(s: Session) -> None:
        people.set_persona(s, people.resolve(s, "http", "ana").id, value)

    results = await asyncio.gather(database.write(work), database.write(_put("n")), return_exceptions=True)
    assert isinstance(results[0], NotStorable)
    assert await database.read(all_ids) == []
    assert await database.read(lambda s: settings.get(s, "n")) is True


class _Driver(Exception):
    """An error of asyncpg, as far as SQLAlchemy passes it on."""

    def __init__(self, state: str) -> None:
        super().__init__("said the server\nDETAIL: secret")
        self.sqlstate = state


@pytest.mark.parametrize(
    ("state", "kind"),
    [
        ("22021", NotStorable),
        ("23503", ConstraintViolated),
        ("25006", WriteInRead),
        ("28P01", DatabaseRefused),
        ("40P01", DatabaseBusy),
        ("42501", DatabaseRefused),
        ("53100", StorageFull),
        ("53200", StorageBroken),
        ("53300", DatabaseBusy),
        ("55P03", DatabaseBusy),
        ("58030", StorageBroken),
        ("XX001", DatabaseCorrupt),
    ],
)
def test_every_code_has_its_name(state: str, kind: type[StorageError]) -> None:
    """The place and what the server said, without what it quotes."""
    server = postgres.PostgresServer(make_url("postgresql://heed:secret@db.example/heed"), 1)
    named = server.named_error(DBAPIError("SELECT", {}, _Driver(state)))
    assert type(named) is kind
    assert re.search("heed on db.example .said the server.", str(named))
    assert "secret" not in str(named)
    server.close()


@pytest.mark.parametrize("error", [DBAPIError("SELECT", {}, _Driver("42P01")), ValueError("x"), TimeoutError()])
def test_faults_of_ours_are_not_renamed(error: Exception) -> None:
    """A statement that makes no sense, and what a work raises itself, arrive as they are."""
    server = postgres.PostgresServer(make_url("postgresql://heed@db.example/heed"), 1)
    assert server.named_error(error) is None
    server.close()
