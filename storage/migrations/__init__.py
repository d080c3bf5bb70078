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
    """The revision this heed works with."""
    return _revisions(FOLDER)[0]


def current(engine: Engine) -> str | None:
    """The revision of the database, None for an empty one. Raises SchemaUnknown if it is not one of heed's."""
    with engine.connect() as connection:
        revision = MigrationContext.configure(connection).get_current_revision()
        has_tables = bool(inspect(connection).get_table_names())
    if revision is None and has_tables:
        raise SchemaUnknown(f"{engine.url.database} holds tables that heed did not make")
    if revision is not None and revision not in _revisions(FOLDER):
        raise SchemaUnknown(f"the schema {revision} of {engine.url.database} is newer than this heed ({head()})")
    return revision


def upgrade(
    engine: Engine, *, before_commit: Callable[[Connection], None] | None = None, revision: str = "head"
) -> None:
    """Bring the database to `revision` in one transaction; a crash on the way leaves the old schema."""
    config = _config()
    with engine.begin() as connection:
        config.attributes["connection"] = connection
        command.upgrade(config, revision)
        if before_commit:
            before_commit(connection)


def _config() -> Config:
    config = Config()
    config.set_main_option("script_location", str(FOLDER).replace("%", "%%"))
    return config


@functools.cache
def _revisions(folder: Path) -> list[str]:
    """All revisions in a folder, newest first; reading them takes longer than opening the database."""
    return [script.revision for script in ScriptDirectory(str(folder)).walk_revisions()]
