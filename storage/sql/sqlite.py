"""Everything that is SQLite's own: PRAGMAs, transactions, checks, checkpoints, backups, error codes.

Owns the file `heed.db` and, beside it, the marker `heed.db.clean`: it is written when heed stops cleanly and
removed when it starts, so a start without it follows a crash (or a restore) and checks the whole file first.
An empty or missing file is taken for a new one only if the data directory has never been used.
"""

import contextlib
import os
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

from sqlalchemy import URL, Connection, Engine, create_engine, event
from sqlalchemy.exc import StatementError

from storage import migrations
from storage.errors import (
    DatabaseBusy,
    DatabaseCorrupt,
    DatabaseMissing,
    StorageBroken,
    StorageError,
    StorageFull,
    StorageNotWritable,
    WriteInRead,
)
from storage.files import atomic
from storage.tables import ADAPTERS_FOLDER, to_json

T = TypeVar("T")

FILE_NAME = "heed.db"
MARKER_SUFFIX = ".clean"
BACKUP_FOLDER = "backups"
BUSY_TIMEOUT_MS = 5_000  # no other program should hold the file at all: long enough for a person's sqlite3 shell

# FULL: with NORMAL an acknowledged commit can be lost at a power cut (sqlite.org/pragma.html#pragma_synchronous).
# secure_delete: without it deleted text stays in the file. temp_store: deleted text must not reach /tmp either.
_WRITER_PRAGMAS = ("journal_mode=WAL", "synchronous=FULL", "secure_delete=ON", "temp_store=MEMORY")
_READER_PRAGMAS = ("query_only=ON", "temp_store=MEMORY")


class SqliteFile:
    """One database file on disk and its clean-shutdown marker."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._marker = path.with_name(path.name + MARKER_SUFFIX)
        self._backups = path.parent / BACKUP_FOLDER

    def prepare(self) -> None:
        """Make sure that the file is there and sound, and take the marker away.

        Raises DatabaseMissing, DatabaseCorrupt, StorageNotWritable.
        """
        atomic.make_directory(self.path.parent)
        self.remove_snapshots()
        if self._is_empty():
            self._refuse_used_directory()
            self._create()
        elif not self._marker.exists():
            self._quick_check()
        atomic.remove_file(self._marker)

    def writer_engine(self, *, has_foreign_keys: bool = True) -> Engine:
        """Return the engine of the writer: one connection, transactions that take the write lock at once.

        Without foreign keys for migrations, which rebuild tables (sqlite.org/lang_altertable.html, step 1).
        """
        pragmas = (*_WRITER_PRAGMAS, f"foreign_keys={'ON' if has_foreign_keys else 'OFF'}")
        return _engine(self.path, pragmas, begin="BEGIN IMMEDIATE", num_connections=1)

    def reader_engine(self, num_connections: int) -> Engine:
        """Return the engine of the readers: each transaction sees one snapshot and cannot write."""
        return _engine(self.path, _READER_PRAGMAS, begin="BEGIN", num_connections=num_connections)

    def backup(self, label: str) -> Path:
        """Copy the whole database to backups/heed-<label>.db and return that path; older backups are removed."""
        with naming_errors(self.path):
            atomic.make_directory(self._backups)
            target = self._backups / f"heed-{label}.db"
            temporary = self._backups / f"{atomic.TEMPORARY_PREFIX}{label}"
            temporary.unlink(missing_ok=True)
            os.close(os.open(temporary, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
            copy(self.path, temporary)
            for path in self._backups.glob("heed-*.db"):
                atomic.remove_file(path)
            atomic.publish_file(temporary, target)
        return target

    def remove_backups(self) -> None:
        """Erase the backups made before upgrades, and what `heed backup` reads from: they hold what has been erased."""
        for path in self._backups.glob("heed-*.db"):
            atomic.remove_file(path)
        self.remove_snapshots()

    def remove_snapshots(self) -> None:
        """Erase what `heed backup` reads from, or left when it was killed; one that runs begins again."""
        for path in self._backups.glob(f"{atomic.TEMPORARY_PREFIX}*"):
            with contextlib.suppress(FileNotFoundError):  # its backup has just ended
                atomic.remove_directory(path)

    def mark_clean(self) -> None:
        """Note that the database was closed cleanly; where that cannot be noted, the next start checks the file."""
        with contextlib.suppress(StorageError):
            atomic.write_file(self._marker, b"closed\n")

    def _is_empty(self) -> bool:
        try:
            return self.path.stat().st_size == 0
        except FileNotFoundError:
            return True

    def _refuse_used_directory(self) -> None:
        adapters = self.path.parent / ADAPTERS_FOLDER
        if self._marker.exists() or (adapters.is_dir() and any(adapters.iterdir())):
            raise DatabaseMissing(f"{self.path} is missing or empty, but {self.path.parent} has been used")

    def _create(self) -> None:
        # Made here and not by SQLite, so that it and the files SQLite makes beside it are for the owner only.
        try:
            os.close(os.open(self.path, os.O_CREAT | os.O_RDWR | os.O_NOFOLLOW, 0o600))
        except OSError as error:
            raise StorageNotWritable(f"cannot create {self.path} ({error.strerror})") from error

    def _quick_check(self) -> None:
        with naming_errors(self.path):
            # Read-only, so that a damaged file is left exactly as it was found.
            connection = _connect_readonly(self.path)
            try:
                findings = [row[0].replace("\n", " ") for row in connection.execute("PRAGMA quick_check(3)")]
            finally:
                connection.close()
        if findings != ["ok"]:
            raise DatabaseCorrupt(f"{self.path} is damaged ({'; '.join(findings)})")


class SqliteStore:
    """The connections to one file: one that writes and a few that read."""

    def __init__(self, path: Path, num_readers: int) -> None:
        self._file = SqliteFile(path)
        self._writer = self._file.writer_engine()
        self._reader = self._file.reader_engine(num_readers)

    def prepare(self) -> None:
        """Check the file and bring its schema up to date.

        Blocking: after an unclean shutdown the whole file is checked. Raises StorageNotWritable, StorageFull,
        DatabaseCorrupt, DatabaseMissing, DatabaseBusy, SchemaUnknown; then nothing was changed.
        """
        with naming_errors(self._file.path):
            self._file.prepare()
            _migrate(self._file)

    def writing(self, use: Callable[[Connection], None]) -> None:
        """Run `use`, one transaction, on the connection that writes. Blocking."""
        with self._writer.connect() as connection:
            use(connection)

    def reading(self, use: Callable[[Connection], T]) -> T:
        """Run `use` on a connection that cannot write. Blocking."""
        with self._reader.connect() as connection:
            return use(connection)

    def named_error(self, error: BaseException, *, is_reader: bool) -> StorageError | None:
        """Return the storage error for an error of SQLite, None for a fault of ours."""
        return named_error(error, self._file.path, is_reader=is_reader)

    def is_conflict(self, _error: BaseException) -> bool:
        """Return False: there is no other writer."""
        return False

    def checkpoint(self) -> None:
        """Empty the write-ahead log. Blocking: nothing may be written meanwhile. Raises DatabaseBusy."""
        truncate_wal(self._writer)

    def remove_backups(self) -> None:
        """Erase the copies made before upgrades. Blocking."""
        self._file.remove_backups()

    def close(self) -> None:
        """Close every connection and note that this was done. Blocking."""
        self._reader.dispose()
        self._writer.dispose()  # SQLite empties and removes the log when its last connection goes
        self._file.mark_clean()


class RunningSqliteStore(SqliteStore):
    """The file of a heed that runs, which checks, upgrades and closes it."""

    def prepare(self) -> None:
        """Look whether it is there and of this heed. Blocking. Raises DatabaseMissing, SchemaUnknown, DatabaseBusy."""
        if not self._file.path.exists():
            raise DatabaseMissing(f"{self._file.path} is not there yet")
        with naming_errors(self._file.path):
            migrations.check_is_newest(self.reading(migrations.current_on), str(self._file.path))

    def close(self) -> None:
        """Close every connection. Blocking."""
        self._reader.dispose()
        self._writer.dispose()


def named_error(error: BaseException, path: Path | str, *, is_reader: bool = False) -> StorageError | None:
    """Return the storage error for an error of SQLite, None for one that is a fault of ours or not SQLite's at all.

    Looks through the whole chain: once a full disk has ended the transaction, undoing the SAVEPOINT fails too, and
    that second error is the one that arrives.
    """
    link: BaseException | None = error if isinstance(error, StatementError | sqlite3.Error) else None
    while link is not None:
        code = getattr(link, "sqlite_errorcode", 0) & 0xFF
        if is_reader and code == sqlite3.SQLITE_READONLY:
            return WriteInRead(f"a read tried to write ({link})")
        if code in _ERRORS:
            make, what = _ERRORS[code]
            return make(f"{what}: {path} ({link})")
        link = link.__cause__ or link.__context__
    return None


@contextlib.contextmanager
def naming_errors(path: Path) -> Iterator[None]:
    """Let SQLite's errors leave the block as storage's."""
    try:
        yield
    except (StatementError, sqlite3.Error) as error:
        named = named_error(error, path)
        if named is None:
            raise
        raise named from error


def truncate_wal(engine: Engine) -> None:
    """Move the write-ahead log into the database file and cut it to nothing, so that nothing deleted is left in it.

    Raises DatabaseBusy while someone reads for longer than the busy timeout.
    """
    connection = engine.raw_connection()
    try:
        cursor = connection.cursor()
        cursor.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        is_busy, *_ = cursor.fetchone() or (0,)
    finally:
        connection.close()
    if is_busy:
        raise DatabaseBusy("the write-ahead log could not be emptied: another program is still reading the database")


def copy(source: Path, target: Path) -> None:
    """Copy a database as it is at one moment into an empty file, also while heed writes to it.

    Blocking: for as long as reading all of it takes; writers go on. Raises sqlite3.Error.
    """
    origin, taken = _connect_readonly(source), sqlite3.connect(target)
    try:
        origin.backup(taken)
    finally:
        taken.close()
        origin.close()


@contextlib.contextmanager
def looking_at(copied: Path) -> Iterator[sqlite3.Connection]:
    """Provide a connection that reads a copy no one writes to, and leaves no file beside it.

    Raises storage's errors.
    """
    with naming_errors(copied):
        connection = sqlite3.connect(f"{copied.absolute().as_uri()}?mode=ro&immutable=1", uri=True)
        try:
            yield connection
        finally:
            connection.close()


def check_copy(copied: Path) -> None:
    """Read all of a copy. Raises DatabaseCorrupt where a page, an index or a reference is not as it should be."""
    with looking_at(copied) as connection:
        findings = [row[0].replace("\n", " ") for row in connection.execute("PRAGMA integrity_check(3)")]
        broken = {row[0] for row in connection.execute("PRAGMA foreign_key_check")}
    if findings != ["ok"]:
        raise DatabaseCorrupt(f"{copied.name} is damaged ({'; '.join(findings)})")
    if broken:
        raise DatabaseCorrupt(f"{copied.name}: rows refer to nothing in {sorted(broken)}")


def check_references(connection: Connection) -> None:
    """Raise DatabaseCorrupt if a row refers to one that is not there; a migration runs with that check off."""
    broken = connection.exec_driver_sql("PRAGMA foreign_key_check").fetchall()
    if broken:
        raise DatabaseCorrupt(f"rows refer to nothing in {sorted({row[0] for row in broken})}")


def _migrate(file: SqliteFile) -> None:
    engine = file.writer_engine(has_foreign_keys=False)
    try:
        current, head = migrations.current(engine), migrations.head()
        if current == head:
            return
        if current:
            file.backup(f"{current}-before-{head}")
        migrations.upgrade(engine, before_commit=check_references)
    finally:
        engine.dispose()


def _engine(path: Path, pragmas: tuple[str, ...], *, begin: str, num_connections: int) -> Engine:
    url = URL.create("sqlite", database=str(path))
    engine = create_engine(url, pool_size=num_connections, max_overflow=0, json_serializer=to_json)
    event.listen(engine, "connect", lambda connection, _: _configure(connection, pragmas))
    event.listen(engine, "begin", lambda connection: connection.exec_driver_sql(begin))
    # Every job of the writer has a savepoint. SQLAlchemy compiles the statement anew for each name: half its time.
    engine.dialect.do_savepoint = _said("SAVEPOINT")  # type: ignore[assignment, method-assign]
    engine.dialect.do_release_savepoint = _said("RELEASE SAVEPOINT")  # type: ignore[assignment, method-assign]
    return engine


def _said(words: str) -> Callable[[Connection, str], None]:
    return lambda connection, name: connection.exec_driver_sql(f"{words} {name}").close()


def _configure(connection: Any, pragmas: tuple[str, ...]) -> None:
    # None: sqlite3 leaves transactions alone; its own BEGIN comes too late for SAVEPOINT and for reads.
    connection.isolation_level = None
    cursor = connection.cursor()
    for pragma in (f"busy_timeout={BUSY_TIMEOUT_MS}", *pragmas):
        cursor.execute(f"PRAGMA {pragma}")
    cursor.close()


def _connect_readonly(path: Path) -> sqlite3.Connection:
    return sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True, timeout=BUSY_TIMEOUT_MS / 1000)


_ERRORS: dict[int, tuple[type[StorageError], str]] = {
    sqlite3.SQLITE_FULL: (StorageFull, "no space to write"),
    sqlite3.SQLITE_IOERR: (StorageBroken, "the disk failed"),
    sqlite3.SQLITE_CORRUPT: (DatabaseCorrupt, "the database is damaged"),
    sqlite3.SQLITE_NOTADB: (DatabaseCorrupt, "this is not a database"),
    sqlite3.SQLITE_PERM: (StorageNotWritable, "the database cannot be opened"),
    sqlite3.SQLITE_CANTOPEN: (StorageNotWritable, "the database cannot be opened"),
    sqlite3.SQLITE_READONLY: (StorageNotWritable, "the database cannot be written"),
    sqlite3.SQLITE_BUSY: (DatabaseBusy, "another program writes to the database"),
    sqlite3.SQLITE_LOCKED: (DatabaseBusy, "another program writes to the database"),
}
