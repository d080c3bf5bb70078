"""Numbered schema migrations (Alembic), run by Database.open; one transaction from the old schema to the newest.

A migration is written by hand in versions/, and a test proves that all of them together make exactly the tables of
storage.tables. A migration that has been released is never changed.
"""

import functools
from collections.abc import Callable
from pathlib import Path

from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, Engine, inspect

from storage.errors import SchemaUnknown

FOLDER = Path(__file__).parent


def head() -> str:
    """Return the revision this heed works with."""
    return _revisions(FOLDER)[0]


def is_known(revision: str) -> bool:
    """Return True if this heed can work with that revision, or bring it up to date."""
    return revision in _revisions(FOLDER)


def current(engine: Engine) -> str | None:
    """Return the revision of the database, None for an empty one. Raises SchemaUnknown if it is not one of heed's."""
    with engine.connect() as connection:
        return current_on(connection)


def current_on(connection: Connection) -> str | None:
    """As `current`, on a connection."""
    name = connection.engine.url.database
    revision = MigrationContext.configure(connection).get_current_revision()
    if revision is None and inspect(connection).get_table_names():
        raise SchemaUnknown(f"{name} holds tables that heed did not make")
    if revision is not None and revision not in _revisions(FOLDER):
        raise SchemaUnknown(f"the schema {revision} of {name} is newer than this heed ({head()})")
    return revision


def check_is_newest(revision: str | None, place: str) -> None:
    """Raise SchemaUnknown if a database that a running heed uses is another heed's."""
    if revision != head():
        raise SchemaUnknown(f"{place} is used by a running heed of another version")


def upgrade(
    engine: Engine, *, before_commit: Callable[[Connection], None] | None = None, revision: str = "head"
) -> None:
    """Bring the database to `revision` in one transaction; a crash on the way leaves the old schema."""
    with engine.begin() as connection:
        upgrade_on(connection, revision)
        if before_commit:
            before_commit(connection)


def upgrade_on(connection: Connection, revision: str = "head") -> None:
    """As `upgrade`, in the transaction of a connection."""
    config = _config()
    config.attributes["connection"] = connection
    command.upgrade(config, revision)


def _config() -> Config:
    config = Config()
    config.set_main_option("script_location", str(FOLDER).replace("%", "%%"))
    return config


@functools.cache
def _revisions(folder: Path) -> list[str]:
    """All revisions in a folder, newest first; reading them takes longer than opening the database."""
    return [script.revision for script in ScriptDirectory(str(folder)).walk_revisions()]
