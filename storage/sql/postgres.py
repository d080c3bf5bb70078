"""A PostgreSQL server: who may write, in which settings, error codes.

Owns the connections: one that writes and a few that read. Invariants: the connection that writes holds an advisory
lock from its first moment on, so anyone who writes is the one heed of that database, also after a lost connection; what
reads cannot write and sees one snapshot; a commit is on the server's disk before it is acknowledged. Each connection
needs a session of its own: a pooler that hands out single transactions cannot stand in between.
"""

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from queue import SimpleQueue
from typing import Any, ClassVar, TypeVar

from sqlalchemy import URL, Connection, event, text
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.ext.asyncio import AsyncEngine, create_async_engine

from storage import migrations
from storage.errors import (
    ConstraintViolated,
    DatabaseBusy,
    DatabaseCorrupt,
    DatabaseLocked,
    DatabaseLost,
    DatabaseRefused,
    DatabaseUnreachable,
    DriverMissing,
    NotStorable,
    StorageBroken,
    StorageError,
    StorageFull,
    WriteInRead,
)
from storage.sql.pg_connection import PgConnection, causes, first_line, sqlstate
from storage.tables import new_id, to_json

T = TypeVar("T")

DRIVER = "postgresql+asyncpg"
NAMES = ("postgresql", "postgres", DRIVER)  # how a URL may begin
OPTIONS = frozenset({"host", "port", "sslmode"})  # what may follow its question mark
LOCK_KEY = 0x68656564  # "heed", among the advisory locks of the database
CONNECT_TIMEOUT_S = 10.0
ANSWER_TIMEOUT_S = 60.0  # a statement takes milliseconds: a server that is silent for so long is gone
MARK_KEY = "last_commit"  # the setting that tells which transaction was the last
DOUBT_S = 10.0  # how long a lost commit is asked after: a server that was killed is back in a few seconds
DOUBT_PAUSE_S = 0.2
LOCK_TIMEOUT_MS = 5_000  # as SQLite's busy timeout: long enough for the session of a heed that was killed to end

_SESSION = {
    "application_name": "heed",
    "synchronous_commit": "on",  # a role or a database may have it off, and then lose acknowledged writes
    "tcp_keepalives_idle": "30",  # the lock of a heed whose machine is gone is free after a minute
    "tcp_keepalives_interval": "10",
    "tcp_keepalives_count": "3",
}
_LEAVE_MARK = text(
    "INSERT INTO setting (key, value) VALUES (:key, to_json(CAST(:mark AS text))) "
    "ON CONFLICT (key) DO UPDATE SET value = excluded.value"
)
_LAST_MARK = text("SELECT value #>> '{}' FROM setting WHERE key = :key")
_READER = {"default_transaction_isolation": "repeatable read", "default_transaction_read_only": "on"}


class PostgresServer:
    """One database on a server, and the lanes that lead to it. Nothing is connected before it is needed."""

    mark_key = MARK_KEY
    writer_settings: ClassVar[dict[str, str]] = {"lock_timeout": str(LOCK_TIMEOUT_MS)}

    def __init__(self, address: URL, num_readers: int) -> None:
        """Raise DriverMissing for a URL that heed cannot serve."""
        address = _with_driver(address)
        self.place = f"{address.database or 'the database'} on {address.host or address.query.get('host', 'localhost')}"
        writer = _engine(address, _SESSION | self.writer_settings)
        event.listen(writer.sync_engine, "commit", self._leave_mark)
        self._writer = PgConnection(writer, self._lock)
        self._readers = [PgConnection(_engine(address, _SESSION | _READER)) for _ in range(num_readers)]
        self._mark = ""  # of the transaction that is being committed
        self._free: SimpleQueue[PgConnection] = SimpleQueue()
        for lane in self._readers:
            self._free.put(lane)

    def prepare(self) -> None:
        """Take the lock and bring the schema up to date. Blocking.

        Raises DatabaseUnreachable, DatabaseRefused, DatabaseBusy, DatabaseLocked, SchemaUnknown; then nothing was
        changed.
        """
        try:
            self._first(lambda: self._writer.connected(_migrate))
        except BaseException:
            aside(self.close)
            raise

    def look(self) -> str | None:
        """Return the revision of the schema that is there, None in an empty database; changes nothing, and is the only
        call.

        Blocking. Raises DatabaseUnreachable, DatabaseRefused, DatabaseBusy, SchemaUnknown.
        """
        try:
            return self._first(lambda: self.reading(migrations.current_on))
        finally:
            aside(self.close)

    def writing(self, use: Callable[[Connection], None]) -> None:
        """Run `use`, one transaction, on the connection that writes. Blocking. Raises DatabaseLost, DatabaseLocked.

        Where the connection is lost while the server commits, the next one tells whether it did; only where there is
        none for DOUBT_S that stays open, and DatabaseLost says so.
        """
        self._mark = ""
        try:
            self._writer.connected(use)
        except DatabaseLost:
            if not self._mark or not self._is_kept(self._mark):
                raise

    def reading(self, use: Callable[[Connection], T]) -> T:
        """Run `use` on a connection whose transactions see one snapshot each. Blocking. Raises DatabaseLost."""
        lane = self._free.get()
        try:
            return lane.connected(use)
        finally:
            self._free.put(lane)

    def named_error(self, error: BaseException, *, is_reader: bool = False) -> StorageError | None:
        """Return the storage error for what SQLAlchemy or the driver raised, None for a fault of ours."""
        for link in causes(error if isinstance(error, SQLAlchemyError) else None):
            if isinstance(link, DatabaseLost):  # what is raised after it tells only that the transaction is gone
                return DatabaseLost(*link.args)
            state = sqlstate(link)
            for prefix, (make, what) in _ERRORS.items():
                if state.startswith(prefix):
                    return make(f"{what}: {self.place} ({first_line(link)})")
        return None

    def is_conflict(self, _error: BaseException) -> bool:
        """Return False: there is no other writer."""
        return False

    def checkpoint(self) -> None:
        """In place: nothing; the server's own files are its operator's."""

    def remove_backups(self) -> None:
        """In place: nothing; heed makes no copies of a server's database."""

    def close(self) -> None:
        """Close every connection, the lock's last. Blocking."""
        for lane in (*self._readers, self._writer):
            lane.close()

    def _first(self, use: Callable[[], T]) -> T:
        """Run `use`; where it fails, say what to set up."""
        try:
            return aside(use)
        except DatabaseLost as error:
            raise self._unopened(error.__cause__ or error) from error
        except SQLAlchemyError as error:
            named = self.named_error(error)
            if named is None:
                raise
            raise named from error

    def _unopened(self, error: BaseException) -> StorageError:
        named = self.named_error(error)
        if isinstance(named, DatabaseRefused | DatabaseBusy):
            return named
        return DatabaseUnreachable(f"cannot open {self.place} ({first_line(error)})")

    def _leave_mark(self, connection: Connection) -> None:
        """Leave the mark that is the last statement of each transaction."""
        mark = new_id()
        connection.execute(_LEAVE_MARK, {"key": self.mark_key, "mark": mark})
        self._mark = mark

    def _is_kept(self, mark: str) -> bool:
        """Return True if a transaction was committed: there is no other writer, so its mark is the last one or nowhere.

        Raises DatabaseLost if no one can tell. The new connection waits for the end of the old one, since that one
        holds the lock.
        """
        deadline_s = time.monotonic() + DOUBT_S
        while True:
            try:
                return self._writer.connected(self._last_mark) == mark
            except (DatabaseLost, DatabaseLocked) as error:
                if time.monotonic() > deadline_s:
                    raise DatabaseLost("no server tells whether the last write was kept") from error
            time.sleep(DOUBT_PAUSE_S)

    def _last_mark(self, connection: Connection) -> object:
        return connection.execute(_LAST_MARK, {"key": self.mark_key}).scalar()

    def _lock(self, connection: Any) -> None:
        take_lock(connection, "pg_advisory_lock($1)", (LOCK_KEY,), f"another heed uses {self.place}")


class RunningPostgresServer(PostgresServer):
    """The database of a heed that runs, which holds the lock, upgrades it, and alone leaves marks."""

    def prepare(self) -> None:
        """Look whether it is of this heed. Blocking. Raises DatabaseUnreachable, DatabaseRefused, SchemaUnknown."""
        try:
            migrations.check_is_newest(self._first(lambda: self.reading(migrations.current_on)), self.place)
        except BaseException:
            aside(self.close)
            raise

    def _lock(self, connection: Any) -> None:
        """In place: the running heed has it."""

    def _leave_mark(self, connection: Connection) -> None:
        """In place: by its marks the running heed tells which of its own transactions were kept."""


def take_lock(connection: Any, lock: str, keys: tuple[int | str, ...], what: str) -> None:
    """Take an advisory lock for as long as the connection lives. Raises DatabaseLocked, with `what` as its reason."""
    cursor = connection.cursor()
    try:
        cursor.execute(f"SELECT {lock}", keys)
    except Exception as error:
        if sqlstate(error) != "55P03":
            raise
        raise DatabaseLocked(what) from error
    finally:
        cursor.close()


def aside(use: Callable[[], T]) -> T:
    """Run `use` in a thread of its own, since this one may run a loop. Blocking."""
    with ThreadPoolExecutor(1, thread_name_prefix="heed-opening") as thread:
        return thread.submit(use).result()


def _with_driver(address: URL) -> URL:
    """Return the URL as the driver wants it. Raises DriverMissing."""
    if address.drivername not in NAMES:
        raise DriverMissing(f"no driver for the database {address!r}: heed knows postgresql://")
    unknown = sorted(set(address.query) - OPTIONS)
    if unknown:
        raise DriverMissing(f"the driver does not know {', '.join(unknown)} in the database URL {address!r}")
    options = {("ssl" if name == "sslmode" else name): value for name, value in address.query.items()}
    return address.set(drivername=DRIVER, query=options)


def _engine(address: URL, session: dict[str, str]) -> AsyncEngine:
    given = {"server_settings": session, "timeout": CONNECT_TIMEOUT_S, "command_timeout": ANSWER_TIMEOUT_S}
    return create_async_engine(address, pool_size=1, max_overflow=0, json_serializer=to_json, connect_args=given)


def _migrate(connection: Connection) -> None:
    current = migrations.current_on(connection)
    connection.rollback()
    if current != migrations.head():
        with connection.begin():
            migrations.upgrade_on(connection)


# By SQLSTATE or its class (postgresql.org/docs/current/errcodes-appendix.html), the first that fits.
_ERRORS: dict[str, tuple[type[StorageError], str]] = {
    "22": (NotStorable, "a value cannot be stored"),
    "23": (ConstraintViolated, "a row contradicts another"),
    "25006": (WriteInRead, "a read tried to write"),
    "28": (DatabaseRefused, "the server does not let heed in"),
    "40": (DatabaseBusy, "another program writes to the database"),
    "42501": (DatabaseRefused, "the server does not let heed do that"),
    "53100": (StorageFull, "no space to write"),
    "53300": (DatabaseBusy, "the server has no connection left"),
    "53": (StorageBroken, "the server has run out of something"),
    "54": (NotStorable, "a value is too large"),
    "55P03": (DatabaseBusy, "another program holds the database"),
    "57014": (DatabaseBusy, "the server broke a statement off"),
    "58": (StorageBroken, "the server's disk failed"),
    "XX001": (DatabaseCorrupt, "the database is damaged"),
    "XX002": (DatabaseCorrupt, "an index of the database is damaged"),
}
