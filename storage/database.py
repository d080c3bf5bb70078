"""The database: one writer thread with group commit, a few reader threads, and nothing of it on the event loop.

SQLite (WAL, synchronous=FULL) in the data directory unless a URL names another database. Invariants: an awaited
write is on disk; a write and everything it changed is one transaction; a read sees one snapshot and all writes
acknowledged before it began; rows that come back are detached and fully loaded. Works are plain functions of a
Session: they must not block on anything but the database and must not keep the Session.
"""

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TypeVar

from sqlalchemy import URL, Engine, create_engine, make_url
from sqlalchemy.exc import ArgumentError, IntegrityError, NoSuchModuleError, StatementError
from sqlmodel import Session as Session  # repositories take it; only storage imports sqlmodel

from storage import migrations, sqlite
from storage.errors import ConstraintViolated, DatabaseClosed, DriverMissing, NotStorable, StorageError
from storage.sqlite import SqliteFile
from storage.tables import to_json
from storage.writer import Writer

T = TypeVar("T")

NUM_READERS = 4  # reads take milliseconds; more threads would only wait for the same disk


class Database:
    """An open database. Make one with Database.open, end it with close()."""

    def __init__(self, writer_engine: Engine, reader_engine: Engine, file: SqliteFile | None) -> None:
        self._writer_engine = writer_engine
        self._reader_engine = reader_engine
        self._file = file
        self._writer = Writer(writer_engine, self._named)
        self._readers = ThreadPoolExecutor(NUM_READERS, thread_name_prefix="heed-reader")
        self._closing = threading.Lock()
        self._is_closed = False

    @classmethod
    def open(cls, data_dir: Path, url: str | None = None) -> "Database":
        """Open the database of a data directory, or the one `url` names, and bring its schema up to date.

        Blocking: after an unclean shutdown the whole file is checked. Raises StorageNotWritable, StorageFull,
        DatabaseCorrupt, DatabaseMissing, DatabaseBusy, DriverMissing, SchemaUnknown; then nothing was changed.
        """
        address = _parse(url) if url else URL.create("sqlite")
        if address.get_backend_name() != "sqlite":
            return cls._open_server(address)
        file = SqliteFile(Path(address.database or data_dir / sqlite.FILE_NAME))
        with sqlite.naming_errors(file.path):
            file.prepare()
            _migrate(file)
        return cls(file.writer_engine(), file.reader_engine(NUM_READERS), file)

    @classmethod
    def _open_server(cls, address: URL) -> "Database":
        try:
            engine = create_engine(address, pool_size=NUM_READERS + 1, json_serializer=to_json)
        except (NoSuchModuleError, ImportError) as error:
            raise DriverMissing(f"no driver for the database {address!r} ({error})") from error
        if migrations.current(engine) != migrations.head():
            migrations.upgrade(engine)
        return cls(engine, engine, None)

    @property
    def num_commits(self) -> int:
        """Commits so far; less than the writes where several shared one."""
        return self._writer.num_commits

    async def write(self, work: Callable[[Session], T]) -> T:
        """Run `work` in a transaction in the writer thread and return its result after the commit.

        What `work` raises is raised here, and its changes are undone. Cancelling the wait drops a work that has
        not begun and lets one that has begun finish. Raises DatabaseClosed, StorageFull, StorageNotWritable,
        StorageBroken, DatabaseBusy, DatabaseCorrupt, NotStorable, ConstraintViolated.
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

        In place: on a database other than SQLite nothing happens.
        """
        if self._file:
            await asyncio.wrap_future(self._writer.submit_alone(sqlite.truncate_wal))

    async def remove_backups(self) -> None:
        """Erase the copies made before upgrades: they hold what has been erased since."""
        if self._file:
            await asyncio.to_thread(self._file.remove_backups)

    async def close(self) -> None:
        """Finish what was handed over, then close. Harmless when it is closed; a cancelled wait closes all the same."""
        await asyncio.shield(asyncio.to_thread(self._close))

    def _read(self, work: Callable[[Session], T]) -> T:
        try:
            with Session(self._reader_engine, expire_on_commit=False) as session:
                return work(session)
        except Exception as error:
            named = self._named(error, is_reader=True)
            if named is error:
                raise
            raise named from error

    def _named(self, error: BaseException, *, is_reader: bool = False) -> BaseException:
        """The storage error for what a database driver raised; any other error as it is."""
        if isinstance(error, IntegrityError):
            return _caused(ConstraintViolated(str(error.orig)), error)
        if isinstance(error, UnicodeEncodeError | OverflowError):
            return _caused(NotStorable(str(error)), error)
        if isinstance(error, StatementError) and isinstance(error.orig, StorageError):  # from to_json
            return error.orig
        if isinstance(error, StopIteration):  # an asyncio future refuses it and would leave its waiter hanging
            return _caused(RuntimeError("a work raised StopIteration"), error)
        named = sqlite.named_error(error, self._writer_engine.url.database or "", is_reader=is_reader)
        return _caused(named, error) if named else error

    def _close(self) -> None:
        with self._closing:
            if self._is_closed:
                return
            self._is_closed = True
            self._readers.shutdown()
            self._writer.close()
            self._reader_engine.dispose()
            self._writer_engine.dispose()  # SQLite empties and removes the log when its last connection goes
            if self._file:
                self._file.mark_clean()


def _parse(url: str) -> URL:
    try:
        return make_url(url)
    except ArgumentError as error:
        raise DriverMissing(
            "the database URL cannot be read: it has the form postgresql://user:password@host/name"
        ) from error


def _migrate(file: SqliteFile) -> None:
    engine = file.writer_engine(has_foreign_keys=False)
    try:
        current, head = migrations.current(engine), migrations.head()
        if current == head:
            return
        if current:
            file.backup(f"{current}-before-{head}")
        migrations.upgrade(engine, before_commit=sqlite.check_references)
    finally:
        engine.dispose()


def _caused(error: BaseException, cause: BaseException) -> BaseException:
    error.__cause__ = cause
    return error
