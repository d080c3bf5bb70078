"""The database of a cluster, which several processes write to at once; each is a member with a name of its own.

Invariants: a heed that is alone and a cluster never meet in one database; of two processes of one name the later one is
refused; a transaction is as if no other had run beside it (serializable), or it is undone and told as a conflict.
"""

from typing import Any, ClassVar

from sqlalchemy import URL

from storage import migrations
from storage.sql.pg_connection import causes, sqlstate
from storage.sql.postgres import LOCK_KEY, MARK_KEY, PostgresServer, aside, take_lock

SILENCE_MS = 3_000  # a process that stops within a transaction must not hold the others up for long
CONFLICTS = ("40001", "40P01")  # SQLSTATE: another transaction was first; two waited for each other


class MemberPostgresServer(PostgresServer):
    """The same database for one of several writers."""

    writer_settings: ClassVar[dict[str, str]] = PostgresServer.writer_settings | {
        "default_transaction_isolation": "serializable",
        "idle_in_transaction_session_timeout": str(SILENCE_MS),
    }

    def __init__(self, address: URL, num_readers: int, member: str) -> None:
        """Raise DriverMissing for a URL that heed cannot serve."""
        super().__init__(address, num_readers)
        self.mark_key = f"{MARK_KEY}/{member}"
        self._address, self._member = address, member

    def prepare(self) -> None:
        """Bring the schema up to date where this is the first member, then join the others. Blocking.

        Raises as PostgresServer.prepare: DatabaseLocked where a heed is alone in the database, where another member
        has this name, or where members of an older heed still run.
        """
        try:
            self._bring_up_to_date()
        except BaseException:
            aside(self.close)
            raise
        super().prepare()

    def is_conflict(self, error: BaseException) -> bool:
        """Return True where another member was first, so that the same work may be right the next time."""
        return any(sqlstate(link) in CONFLICTS for link in causes(error))

    def _bring_up_to_date(self) -> None:
        if self._first(lambda: self.reading(migrations.current_on)) != migrations.head():
            alone = PostgresServer(self._address, 0)
            alone.prepare()
            aside(alone.close)

    def _lock(self, connection: Any) -> None:
        alone, namesake = f"a heed that is alone uses {self.place}", f"another process there is called {self._member}"
        take_lock(connection, "pg_advisory_lock_shared($1)", (LOCK_KEY,), alone)
        take_lock(connection, "pg_advisory_lock($1, hashtext($2))", (LOCK_KEY, self._member), namesake)
