"""The schema on disk is the schema of the tables, and upgrades keep data."""

import contextlib
import re
import shutil
import sqlite3
import time
from pathlib import Path

import pytest
from alembic.autogenerate import compare_metadata
from alembic.runtime.migration import MigrationContext
from sqlalchemy import Engine, create_engine
from sqlmodel import SQLModel

from bot.platforms.discord.events import reaction_row
from storage import migrations, tables
from storage.database import Database
from storage.errors import SchemaUnknown
from storage.people import people
from storage.sql import sqlite
from storage.sql.sqlite import SqliteFile
from tests.storage.conftest import Store

pytestmark = pytest.mark.sqlite_only

NEXT = '''
"""A migration of the future: it rebuilds a table that others refer to."""

import sqlalchemy as sa
from alembic import op

revision = "9999"
down_revision = "{head}"


def upgrade():
    with op.batch_alter_table("user") as batch:
        batch.add_column(sa.Column("colour", sa.String(), nullable=False, server_default="red"))
    {more}
'''


@pytest.fixture
def engine(tmp_path: Path) -> Engine:
    """An empty database's engine for migrations."""
    file = SqliteFile(tmp_path / "heed.db")
    file.prepare()
    return file.writer_engine(has_foreign_keys=False)


def _schema(engine: Engine) -> dict[str, list[str]]:
    """Each table's and index's definition, clause by clause; the order of constraints means nothing."""
    query = "SELECT name, sql FROM sqlite_master WHERE sql IS NOT NULL AND name NOT LIKE 'alembic%'"
    with engine.connect() as connection:
        found = connection.exec_driver_sql(query).fetchall()
    # SQLite quotes the name of a table that was made anew
    return {name: _clauses(re.sub(r"\s+", " ", sql).replace('"', "")) for name, sql in found}


def _clauses(sql: str) -> list[str]:
    return sorted(clause.strip(" )") for clause in re.split(r", (?![^()]*\))", sql))


def _with_next(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, more: str = "") -> None:
    """From here on heed has one migration more."""
    folder = tmp_path / "migrations"
    head = migrations.head()
    shutil.copytree(migrations.FOLDER, folder)
    (folder / "versions" / "9999_next.py").write_text(NEXT.format(head=head, more=more))
    monkeypatch.setattr(migrations, "FOLDER", folder)


def _columns(path: Path) -> set[str]:
    with contextlib.closing(sqlite3.connect(path)) as connection:
        return {row[1] for row in connection.execute("PRAGMA table_info(user)")}


def test_autogenerate_finds_nothing_to_add(engine: Engine) -> None:
    """All migrations together make the tables of storage.tables, as far as Alembic sees."""
    migrations.upgrade(engine)
    with engine.connect() as connection:
        context = MigrationContext.configure(connection, opts={"compare_type": True})
        assert compare_metadata(context, SQLModel.metadata) == []


def test_the_migrated_schema_is_the_one_of_the_tables_to_the_letter(engine: Engine) -> None:
    """AUTOINCREMENT and constraint names, which Alembic does not compare, are the same too."""
    migrations.upgrade(engine)
    fresh = create_engine("sqlite://")
    SQLModel.metadata.create_all(fresh)
    assert _schema(engine) == _schema(fresh)


def test_an_empty_database_has_no_revision_and_a_migrated_one_the_newest(engine: Engine) -> None:
    """current() tells a new database from one at head."""
    assert migrations.current(engine) is None
    migrations.upgrade(engine)
    assert migrations.current(engine) == migrations.head()


def test_a_newer_schema_is_refused_and_left_alone(store: Store) -> None:
    """A data directory of a newer heed is not opened; the message says so and what to do."""
    store.close()
    path = store.data_dir / "heed.db"
    with contextlib.closing(sqlite3.connect(path)) as connection:
        connection.execute("UPDATE alembic_version SET version_num = '9999'")
        connection.commit()
    before = path.read_bytes()
    with pytest.raises(SchemaUnknown, match=r"9999 .* newer than this heed .*Run the heed that wrote it"):
        Database.open(store.data_dir)
    assert path.read_bytes() == before


def test_tables_of_somebody_else_are_refused(tmp_path: Path) -> None:
    """A database that heed did not make is not taken over."""
    with contextlib.closing(sqlite3.connect(tmp_path / "heed.db")) as connection:
        connection.execute("CREATE TABLE user (name TEXT)")
    with pytest.raises(SchemaUnknown, match="heed did not make"):
        Database.open(tmp_path)


def test_an_upgrade_keeps_the_data_and_a_copy_from_before(
    store: Store, ana: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The old schema lies in backups/ with all rows; the new one has them too, with their references."""
    head = migrations.head()
    _with_next(tmp_path, monkeypatch)
    store.reopen()
    assert store.read(lambda s: people.find(s, "http", "ana").id) == ana
    assert "colour" in _columns(store.data_dir / "heed.db")
    copy = store.data_dir / "backups" / f"heed-{head}-before-9999.db"
    assert "colour" not in _columns(copy)
    with contextlib.closing(sqlite3.connect(copy)) as connection:
        assert connection.execute("SELECT id FROM user").fetchall() == [(ana,)]


def test_an_up_to_date_database_is_not_copied(store: Store) -> None:
    """Only an upgrade makes a backup; a first start and a restart make none."""
    store.reopen()
    assert not (store.data_dir / "backups").exists()


def test_a_migration_that_fails_leaves_the_old_schema(
    store: Store, ana: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A failed migration is undone whole, and the old heed opens the directory."""
    store.close()
    with monkeypatch.context() as patch:
        _with_next(tmp_path, patch, more='raise RuntimeError("half way")')
        with pytest.raises(RuntimeError, match="half way"):
            Database.open(store.data_dir)
    assert "colour" not in _columns(store.data_dir / "heed.db")
    store.reopen()
    assert store.person("ana") == ana


def test_a_migration_that_breaks_references_is_undone(
    store: Store, ana: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The references are checked before the commit, since SQLite does not check them during a migration."""
    store.close()
    _with_next(tmp_path, monkeypatch, more='op.execute("DELETE FROM user")')
    with pytest.raises(sqlite.DatabaseCorrupt, match="identity"):
        Database.open(store.data_dir)
    with contextlib.closing(sqlite3.connect(store.data_dir / "heed.db")) as connection:
        assert connection.execute("SELECT id FROM user").fetchall() == [(ana,)]


def test_an_outbox_with_leases_is_taken_over(engine: Engine) -> None:
    """Items being sent wait again, shown items have no chat, and all items count as made now."""
    migrations.upgrade(engine, revision="0003")
    with engine.begin() as connection:
        for number, state in enumerate(("sending", "waiting", "draft", "done", "dead"), 1):
            connection.exec_driver_sql(
                "INSERT INTO outbox (id, platform, chat_key, payload, state, attempts, lease_until_s, "
                "external_message_id) VALUES (?, 'telegram', '11', '{}', ?, 1, 9.0, '')",
                (str(number), state),
            )
    before_s = time.time()
    migrations.upgrade(engine)
    with engine.connect() as connection:
        found = connection.exec_driver_sql("SELECT state, chat_key, created_at FROM outbox ORDER BY seq").fetchall()
    assert [row[:2] for row in found] == [
        ("waiting", "11"), ("waiting", "11"), ("draft", "11"), ("done", ""), ("dead", ""),
    ]  # fmt: skip
    assert min(row[2] for row in found) >= before_s


def test_keys_of_reactions_name_nobody_any_more(engine: Engine) -> None:
    """The key is the one that the same reaction gets now; other keys stay as they are."""
    reaction = {"message_id": "5", "user_id": "21", "channel_id": "9", "guild_id": None, "emoji": {"name": "👍"}}
    keys = {"r:add:5:21:👍:1": "discord", "m:21": "discord", "21": "telegram"}
    migrations.upgrade(engine, revision="0003")
    with engine.begin() as connection:
        for key, platform in keys.items():
            connection.exec_driver_sql(
                "INSERT INTO inbox (platform, bot_id, update_id, account, chat_key, payload, received_at, is_done, "
                "attempts) VALUES (?, '7', ?, '21', '9', '{}', 1.0, 1, 0)",
                (platform, key),
            )
    migrations.upgrade(engine)
    with engine.connect() as connection:
        found = connection.exec_driver_sql("SELECT update_id FROM inbox ORDER BY seq").scalars().all()
    assert found == [reaction_row("add", reaction, "7", 1).update_id, "m:21", "21"]


def test_the_migrations_are_part_of_the_package() -> None:
    """env.py and at least one revision lie inside storage."""
    assert migrations.FOLDER.is_relative_to(Path(tables.__file__).parent)
    assert (migrations.FOLDER / "env.py").is_file()
    assert list((migrations.FOLDER / "versions").glob("0001_*.py"))
