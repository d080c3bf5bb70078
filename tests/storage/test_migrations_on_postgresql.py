"""The migrations' SQL for PostgreSQL, as a script for psql: what Database.open does, and what an operator may do."""

import io
from collections.abc import Iterator

import pytest
from alembic import command
from alembic.config import Config
from sqlalchemy import create_mock_engine
from sqlmodel import SQLModel

from storage import migrations, tables  # noqa: F401  defines the tables in SQLModel.metadata
from tests.storage.postgres_server import PostgresServer

COLUMNS = """SELECT table_name, column_name, data_type, is_nullable, column_default FROM information_schema.columns
    WHERE table_schema = 'public' AND table_name <> 'alembic_version' ORDER BY 1, 2"""
INDEXES = "SELECT indexdef FROM pg_indexes WHERE schemaname = 'public' AND tablename <> 'alembic_version' ORDER BY 1"
CONSTRAINTS = """SELECT conrelid::regclass, conname, pg_get_constraintdef(oid) FROM pg_constraint
    WHERE connamespace = 'public'::regnamespace AND conrelid <> 'alembic_version'::regclass
    ORDER BY conrelid::regclass::text, 2"""
LEASED = """INSERT INTO outbox (id, platform, chat_key, payload, state, attempts, lease_until_s, external_message_id)
    SELECT number, 'telegram', '11', '{}', state, 1, 9.0, ''
    FROM unnest(ARRAY['sending', 'waiting', 'draft', 'done', 'dead']) WITH ORDINALITY AS given (state, number)"""


@pytest.fixture
def database(postgres: PostgresServer) -> Iterator[str]:
    """The name of an empty database."""
    with postgres.database() as name:
        yield name


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


def test_the_migrations_make_the_tables(postgres: PostgresServer, database: str) -> None:
    """Columns, types, defaults, indexes and constraints are those of storage.tables."""
    postgres.tell(database, migration("head"))
    migrated = [postgres.tell(database, query) for query in (COLUMNS, INDEXES, CONSTRAINTS)]
    postgres.tell(database, "DROP SCHEMA public CASCADE; CREATE SCHEMA public;")
    postgres.tell(database, tables_as_they_are())
    assert migrated == [postgres.tell(database, query) for query in (COLUMNS, INDEXES, CONSTRAINTS)]
    assert all(migrated)


def test_an_outbox_with_leases_is_taken_over(postgres: PostgresServer, database: str) -> None:
    """Items being sent wait again, shown items have no chat, and all items have a time."""
    postgres.tell(database, migration("0003"))
    postgres.tell(database, LEASED)
    postgres.tell(database, migration("0003:0004"))
    found = postgres.tell(database, "SELECT state, chat_key, created_at > 1.7e9 FROM outbox ORDER BY seq")
    assert found == ["waiting|11|t", "waiting|11|t", "draft|11|t", "done||t", "dead||t"]


def test_a_script_that_fails_leaves_the_old_schema(postgres: PostgresServer, database: str) -> None:
    """A migration is one transaction on PostgreSQL, too."""
    postgres.tell(database, migration("0003"))
    before = postgres.tell(database, COLUMNS)
    with pytest.raises(AssertionError, match="division by zero"):
        postgres.tell(database, migration("0003:0004").replace("COMMIT;", "SELECT 1 / 0; COMMIT;"))
    assert postgres.tell(database, COLUMNS) == before
