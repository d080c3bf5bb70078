"""What the migrations say to PostgreSQL, said to a real server with psql: heed's locks have no driver for it."""

import io
import os
import pwd
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from alembic import command
from alembic.config import Config
from sqlalchemy import create_mock_engine
from sqlmodel import SQLModel

from storage import migrations, tables  # noqa: F401  defines the tables in SQLModel.metadata

DEBIAN = Path("/usr/lib/postgresql")
COLUMNS = """SELECT table_name, column_name, data_type, is_nullable, column_default FROM information_schema.columns
    WHERE table_schema = 'public' AND table_name <> 'alembic_version' ORDER BY 1, 2"""
INDEXES = "SELECT indexdef FROM pg_indexes WHERE schemaname = 'public' AND tablename <> 'alembic_version' ORDER BY 1"
CONSTRAINTS = """SELECT conrelid::regclass, conname, pg_get_constraintdef(oid) FROM pg_constraint
    WHERE connamespace = 'public'::regnamespace AND conrelid <> 'alembic_version'::regclass
    ORDER BY conrelid::regclass::text, 2"""
LEASED = """INSERT INTO outbox (id, platform, chat_key, payload, state, attempts, lease_until_s, external_message_id)
    SELECT number, 'telegram', '11', '{}', state, 1, 9.0, ''
    FROM unnest(ARRAY['sending', 'waiting', 'draft', 'done', 'dead']) WITH ORDINALITY AS given (state, number)"""


@dataclass(frozen=True)
class Server:
    """A PostgreSQL that listens on a socket in its own folder."""

    programs: Path
    folder: Path
    owner: dict[str, Any]  # as whom its programs run: it refuses to be root

    def run(self, program: str, *arguments: str, text: str = "") -> str:
        """What one of its programs prints; an error fails the test."""
        done = subprocess.run(
            [self.programs / program, *arguments], input=text, capture_output=True, text=True, cwd=self.folder,
            check=False, **self.owner,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        return done.stdout

    def start(self) -> None:
        """Make an empty cluster and start it."""
        self.run("initdb", "-D", "data", "-U", "heed", "-A", "trust", "-E", "UTF8", "--no-sync")
        options = f"-k {self.folder} -c listen_addresses='' -c fsync=off"
        self.run("pg_ctl", "-D", "data", "-w", "-l", "log", "-o", options, "start")

    def stop(self) -> None:
        """End it at once."""
        self.run("pg_ctl", "-D", "data", "-w", "-m", "immediate", "stop")

    def tell(self, database: str, script: str) -> list[str]:
        """The rows that a script answers; it stops at its first error."""
        connection = ("-h", str(self.folder), "-U", "heed", "-d", database)
        return self.run("psql", *connection, "-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1", text=script).splitlines()


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    """A running server; skipped where there is none to start."""
    found = shutil.which("pg_ctl") or max(map(str, DEBIAN.glob("*/bin/pg_ctl")), default=None)
    if found is None:
        pytest.skip("no PostgreSQL server on this machine")
    with tempfile.TemporaryDirectory(prefix="heed-pg-") as name:
        owner: dict[str, Any] = {}
        if os.getuid() == 0:
            postgres = pwd.getpwnam("postgres")
            os.chown(name, postgres.pw_uid, postgres.pw_gid)
            owner = {"user": postgres.pw_uid, "group": postgres.pw_gid, "extra_groups": []}
        made = Server(Path(found).resolve().parent, Path(name), owner)
        made.start()
        yield made
        made.stop()


@pytest.fixture
def database(server: Server) -> Iterator[str]:
    """The name of an empty database."""
    server.tell("postgres", "CREATE DATABASE heed")
    yield "heed"
    server.tell("postgres", "DROP DATABASE heed")


def migration(revisions: str) -> str:
    """The script that Alembic writes for PostgreSQL."""
    config = Config(output_buffer=io.StringIO())
    config.set_main_option("script_location", str(migrations.FOLDER))
    config.attributes["connection"] = create_mock_engine("postgresql://", lambda *_: None)
    command.upgrade(config, revisions, sql=True)
    return str(config.output_buffer.getvalue())


def tables_as_they_are() -> str:
    """The script that makes the tables of storage.tables."""
    statements: list[str] = []
    engine = create_mock_engine("postgresql://", lambda made, *_: statements.append(str(made.compile(engine))))
    SQLModel.metadata.create_all(engine, checkfirst=False)
    return ";\n".join([*statements, "CREATE TABLE alembic_version ()", ""])


def test_the_migrations_make_the_tables(server: Server, database: str) -> None:
    """Columns, types, defaults, indexes and constraints are those of storage.tables."""
    server.tell(database, migration("head"))
    migrated = [server.tell(database, query) for query in (COLUMNS, INDEXES, CONSTRAINTS)]
    server.tell(database, "DROP SCHEMA public CASCADE; CREATE SCHEMA public;")
    server.tell(database, tables_as_they_are())
    assert migrated == [server.tell(database, query) for query in (COLUMNS, INDEXES, CONSTRAINTS)]
    assert all(migrated)


def test_an_outbox_with_leases_is_taken_over(server: Server, database: str) -> None:
    """What was being sent waits, what was shown has no chat, and what is there has a time."""
    server.tell(database, migration("0003"))
    server.tell(database, LEASED)
    server.tell(database, migration("0003:0004"))
    found = server.tell(database, "SELECT state, chat_key, created_at > 1.7e9 FROM outbox ORDER BY seq")
    assert found == ["waiting|11|t", "waiting|11|t", "draft|11|t", "done||t", "dead||t"]


def test_a_script_that_fails_leaves_the_old_schema(server: Server, database: str) -> None:
    """A migration is one transaction on PostgreSQL, too."""
    server.tell(database, migration("0003"))
    before = server.tell(database, COLUMNS)
    with pytest.raises(AssertionError, match="division by zero"):
        server.tell(database, migration("0003:0004").replace("COMMIT;", "SELECT 1 / 0; COMMIT;"))
    assert server.tell(database, COLUMNS) == before
