"""The database: one writer thread with group commit, a few reader threads, and nothing of it on the event loop.

SQLite (WAL, synchronous=FULL) in the data directory unless a URL names a PostgreSQL server's. Invariants: an awaited
write is on disk; a write and everything it changed is one transaction; a read sees one snapshot and all writes
acknowledged before it began; rows that come back are detached and fully loaded. Works are plain functions of a
Session: they must not block on anything but the database and must not keep the Session.
"""

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, TypeVar

from sqlalchemy import URL, Connection, make_url
from sqlalchemy.exc import ArgumentError, IntegrityError, StatementError
from sqlmodel import Session as Session  # repositories take it; only storage imports sqlmodel

from storage import fencing, migrations
from storage.errors import (
    ConstraintViolated,
    DatabaseClosed,
    DatabaseElsewhere,
    DriverMissing,
    NotStorable,
    StorageError,
)
from storage.fencing import Tokens
from storage.sql import sqlite
from storage.sql.sqlite import RunningSqliteStore, SqliteStore
from storage.sql.writer import Writer

if TYPE_CHECKING:
    from storage.sql.postgres import PostgresServer, RunningPostgresServer

T = TypeVar("T")

NUM_READERS = 4  # reads take milliseconds; more threads would only wait for the same disk


class Store(Protocol):
    """A store of rows: SqliteStore or PostgresServer. Everything blocks."""

    def prepare(self) -> None:
        """Make it ready: the schema is the one of this heed afterwards, or nothing was changed and nothing is open."""

    def writing(self, use: Callable[[Connection], None]) -> None:
        """Run `use`, one transaction, on the one connection that writes."""

    def reading(self, use: Callable[[Connection], T]) -> T:
        """Run `use` on a connection that sees one snapshot and cannot write."""

    def named_error(self, error: BaseException, *, is_reader: bool) -> StorageError | None:
        """Return the storage error for what its driver raised, None for any other error."""

    def is_conflict(self, error: BaseException) -> bool:
        """Return True where a transaction failed because another writer was first, and may be right the next time."""

    def checkpoint(self) -> None:
        """Leave nothing that was deleted in any file of heed's."""

    def remove_backups(self) -> None:
        """Erase the copies that heed made."""

    def close(self) -> None:
        """Close every connection."""


class Database:
    """An open database. Make one with Database.open, end it with close()."""

    def __init__(self, store: Store, tokens: Tokens | None = None) -> None:
        self._store = store
        self.is_shared = tokens is not None  # other processes write to it, too
        self._writer = Writer(store.writing, self._named, store.is_conflict, {fencing.KEY: tokens})
        self._readers = ThreadPoolExecutor(NUM_READERS, thread_name_prefix="heed-reader")
        self._closing = threading.Lock()
        self._is_closed = False

    @classmethod
    def open(cls, data_dir: Path, url: str | None = None) -> "Database":
        """Open the database of a data directory, or the one `url` names, and bring its schema up to date.

        Blocking: after an unclean shutdown the whole file is checked. Raises StorageNotWritable, StorageFull,
        DatabaseCorrupt, DatabaseMissing, DatabaseBusy, DriverMissing, SchemaUnknown, and of a server DatabaseRefused
        and DatabaseLocked; then nothing was changed.
        """
        store = _store(data_dir, url)
        store.prepare()
        return cls(store)

    @classmethod
    def join(cls, data_dir: Path, url: str | None = None) -> "Database":
        """Open the database of a heed that is running: nothing is checked, migrated, locked or marked as closed.

        Blocking. Raises DatabaseMissing, SchemaUnknown, DatabaseBusy, DatabaseRefused, DriverMissing.
        """
        store = _running_store(data_dir, url)
        store.prepare()
        return cls(store)

    @classmethod
    def enter(cls, url: str, member: str, tokens: Tokens) -> "Database":
        """Open the database of a cluster as one of its writers; `tokens` says which leases this process holds.

        Works may run more than once, so they are functions of their session and of nothing else. Blocking. Raises as
        open; DatabaseLocked also where another process has the name, and DriverMissing for SQLite.
        """
        address = _parse(url)
        if address.get_backend_name() == "sqlite":
            raise DriverMissing("a cluster needs the database of a PostgreSQL server")
        from storage.sql.member import MemberPostgresServer  # as in _store

        store = MemberPostgresServer(address, NUM_READERS, member)
        store.prepare()
        return cls(store, tokens)

    @property
    def num_commits(self) -> int:
        """Commits so far; less than the writes where several shared one."""
        return self._writer.num_commits

    async def write(self, work: Callable[[Session], T]) -> T:
        """Run `work` in a transaction in the writer thread and return its result after the commit.

        What `work` raises is raised here, and its changes are undone. Cancelling the wait drops a work that has
        not begun and lets one that has begun finish. Raises DatabaseClosed, StorageFull, StorageNotWritable,
        StorageBroken, DatabaseBusy, DatabaseCorrupt, NotStorable, ConstraintViolated; and of a server DatabaseLocked
        and DatabaseLost, after which the work was not kept, or, where the message says so, may have been.
        """
        return await asyncio.wrap_future(self._writer.submit(work))

    async def read(self, work: Callable[[Session], T]) -> T:
        """Run `work` on one snapshot in a reader thread. Raises as write, and WriteInRead."""
        try:
            future = self._readers.submit(self._read, work)
        except RuntimeError as error:
            raise DatabaseClosed("the database is closed") from error
        return await asyncio.wrap_future(future)

    async def checkpoint(self) -> None:
        """Empty the write-ahead log, so that nothing erased is left in any file. Raises DatabaseBusy.

        In place: on a server nothing happens.
        """
        await asyncio.wrap_future(self._writer.submit_alone(self._store.checkpoint))

    async def remove_backups(self) -> None:
        """Erase the copies made before upgrades: they hold what has been erased since."""
        await asyncio.to_thread(self._store.remove_backups)

    async def close(self) -> None:
        """Finish what was handed over, then close. Harmless when it is closed; a cancelled wait closes all the same."""
        await asyncio.shield(asyncio.to_thread(self._close))

    def _read(self, work: Callable[[Session], T]) -> T:
        try:
            return self._store.reading(lambda connection: _on(connection, work))
        except Exception as error:
            named = self._named(error, is_reader=True)
            if named is error:
                raise
            raise named from error

    def _named(self, error: BaseException, *, is_reader: bool = False) -> BaseException:
        """Return the storage error for what a database driver raised; any other error as it is."""
        if isinstance(error, IntegrityError):
            return _caused(ConstraintViolated(str(error.orig).splitlines()[0]), error)
        if isinstance(error, UnicodeEncodeError | OverflowError):
            return _caused(NotStorable(str(error)), error)
        if isinstance(error, StatementError) and isinstance(error.orig, StorageError):  # from to_json
            return error.orig
        if isinstance(error, StopIteration):  # an asyncio future refuses it and would leave its waiter hanging
            return _caused(RuntimeError("a work raised StopIteration"), error)
        named = self._store.named_error(error, is_reader=is_reader)
        return _caused(named, error) if named else error

    def _close(self) -> None:
        with self._closing:
            if self._is_closed:
                return
            self._is_closed = True
            self._readers.shutdown()
            self._writer.close()
            self._store.close()


@dataclass(frozen=True)
class Schema:
    """The state of a server's database before heed opens it; `revision` is None if it is empty."""

    place: str
    revision: str | None

    @property
    def is_old(self) -> bool:
        """True where opening it would bring the schema up to date."""
        return self.revision not in (None, migrations.head())


def schema_at(url: str) -> Schema | None:
    """Look at a server's database without changing anything; None for SQLite's. Blocking. Raises as Database.open."""
    store = _store(Path(), url)
    return None if isinstance(store, SqliteStore) else Schema(store.place, store.look())


def _store(data_dir: Path, url: str | None) -> "SqliteStore | PostgresServer":
    address = _parse(url) if url else URL.create("sqlite")
    if address.get_backend_name() == "sqlite":
        return SqliteStore(Path(address.database or data_dir / sqlite.FILE_NAME), NUM_READERS)
    from storage.sql.postgres import PostgresServer  # its driver is loaded only where a server is used

    return PostgresServer(address, NUM_READERS)


def _running_store(data_dir: Path, url: str | None) -> "RunningSqliteStore | RunningPostgresServer":
    address = _parse(url) if url else URL.create("sqlite")
    if address.get_backend_name() == "sqlite":
        return RunningSqliteStore(Path(address.database or data_dir / sqlite.FILE_NAME), 1)
    from storage.sql.postgres import RunningPostgresServer  # as in _store

    return RunningPostgresServer(address, 1)


def file_of(data_dir: Path, url: str | None = None) -> Path:
    """Return the file of the database that Database.open would open. Raises DatabaseElsewhere if it is none."""
    address = _parse(url) if url else URL.create("sqlite")
    if address.get_backend_name() != "sqlite":
        raise DatabaseElsewhere(f"the database {address!r} is not a file")
    return Path(address.database or data_dir / sqlite.FILE_NAME)


def _parse(url: str) -> URL:
    try:
        return make_url(url)
    except ArgumentError as error:
        raise DriverMissing(
            "the database URL cannot be read: it has the form postgresql://user:password@host/name"
        ) from error


def _on(connection: Connection, work: Callable[[Session], T]) -> T:
    with Session(connection, expire_on_commit=False) as session:
        return work(session)


def _caused(error: BaseException, cause: BaseException) -> BaseException:
    error.__cause__ = cause
    return error
