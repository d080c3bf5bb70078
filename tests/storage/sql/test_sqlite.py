"""The SQLite file: settings, checks, marker, backups, error names."""

import contextlib
import shutil
import sqlite3
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import Engine

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
from storage.sql import sqlite
from storage.sql.sqlite import SqliteFile
from tests.storage.conftest import Store

pytestmark = pytest.mark.sqlite_only


@contextlib.contextmanager
def _engine(engine: Engine) -> Iterator[Engine]:
    yield engine
    engine.dispose()


def _pragmas(engine: Engine, *names: str) -> dict[str, object]:
    with engine.connect() as connection:
        return {name: connection.exec_driver_sql(f"PRAGMA {name}").scalar() for name in names}


def _filled(path: Path, num_rows: int = 2000) -> SqliteFile:
    """A prepared file with a table of some pages."""
    file = SqliteFile(path)
    file.prepare()
    with _engine(file.writer_engine()) as engine, engine.begin() as connection:
        connection.exec_driver_sql("CREATE TABLE t (id INTEGER PRIMARY KEY, text TEXT)")
        connection.exec_driver_sql("CREATE INDEX by_text ON t (text)")
        connection.exec_driver_sql("INSERT INTO t (text) VALUES (?)", [(f"row {n}" * 10,) for n in range(num_rows)])
    return file


def _damage(path: Path) -> None:
    content = bytearray(path.read_bytes())
    for offset in range(4096 * 3, len(content) - 4096, 4096):
        content[offset : offset + 64] = b"\xff" * 64
    path.write_bytes(content)


def test_the_writer_is_durable_and_erases_what_it_deletes(tmp_path: Path) -> None:
    """The writer works with WAL, FULL sync, secure_delete, foreign keys, a busy timeout, nothing in /tmp."""
    file = SqliteFile(tmp_path / "heed.db")
    file.prepare()
    names = ("journal_mode", "synchronous", "secure_delete", "foreign_keys", "temp_store", "busy_timeout")
    with _engine(file.writer_engine()) as engine:
        assert list(_pragmas(engine, *names).values()) == ["wal", 2, 1, 1, 2, sqlite.BUSY_TIMEOUT_MS]


def test_a_migration_runs_without_foreign_keys(tmp_path: Path) -> None:
    """Only the engine for migrations leaves references unchecked."""
    file = SqliteFile(tmp_path / "heed.db")
    file.prepare()
    with _engine(file.writer_engine(has_foreign_keys=False)) as engine:
        assert _pragmas(engine, "foreign_keys") == {"foreign_keys": 0}


def test_readers_cannot_write(tmp_path: Path) -> None:
    """SQLite itself refuses a write on a reader's connection."""
    file = _filled(tmp_path / "heed.db")
    with _engine(file.reader_engine(1)) as engine, engine.connect() as connection:
        assert connection.exec_driver_sql("PRAGMA query_only").scalar() == 1
        with pytest.raises(Exception, match="readonly database"):
            connection.exec_driver_sql("DELETE FROM t")


def test_the_files_are_for_the_owner_only(store: Store, ana: str) -> None:
    """The data directory is 0700; the database and the files beside it are 0600."""
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in store.data_dir.iterdir()}
    assert modes == {"heed.db": 0o600, "heed.db-wal": 0o600, "heed.db-shm": 0o600}
    assert stat.S_IMODE(store.data_dir.stat().st_mode) == 0o700


def test_a_start_after_a_crash_checks_the_file(tmp_path: Path) -> None:
    """Without the marker a damaged file is refused with a remedy, and is left as it was found."""
    file = _filled(tmp_path / "heed.db")
    _damage(file.path)
    before = file.path.read_bytes()
    with pytest.raises(DatabaseCorrupt, match=r"heed\.db is damaged.*restore the file from a backup"):
        file.prepare()
    assert file.path.read_bytes() == before


def test_a_refused_file_keeps_its_log(tmp_path: Path) -> None:
    """The write-ahead log beside a damaged file is still there for a rescue."""
    file = _filled(tmp_path / "heed.db")
    _damage(file.path)
    crashed = tmp_path / "crashed"
    crashed.mkdir()
    with _engine(file.writer_engine()) as engine:
        with engine.begin() as connection:
            connection.exec_driver_sql("CREATE TABLE late (id INTEGER)")
        for path in tmp_path.glob("heed.db*"):
            shutil.copy(path, crashed)
    before = {name: (crashed / name).read_bytes() for name in ("heed.db", "heed.db-wal")}
    assert before["heed.db-wal"]
    with pytest.raises(DatabaseCorrupt):
        SqliteFile(crashed / "heed.db").prepare()
    assert {name: (crashed / name).read_bytes() for name in before} == before


def test_a_refused_file_is_refused_again(tmp_path: Path) -> None:
    """Starting a second time does not get around the check."""
    file = _filled(tmp_path / "heed.db")
    _damage(file.path)
    for _ in range(2):
        with pytest.raises(DatabaseCorrupt):
            file.prepare()


def test_a_start_after_a_clean_stop_skips_the_check(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The marker spares the check once: preparing takes it away."""
    file = _filled(tmp_path / "heed.db")
    file.mark_clean()
    checks: list[Path] = []
    monkeypatch.setattr(SqliteFile, "_quick_check", lambda self: checks.append(self.path))
    file.prepare()
    assert checks == []
    file.prepare()
    assert checks == [file.path]


def test_a_sound_file_passes_the_check(tmp_path: Path) -> None:
    """After a crash a sound file opens, whether or not its write-ahead log lies beside it."""
    file = _filled(tmp_path / "heed.db")
    file.prepare()
    with _engine(file.writer_engine()) as engine, engine.connect() as connection:
        assert connection.exec_driver_sql("SELECT count(*) FROM t").scalar() == 2000


def test_something_else_in_its_place_is_refused(tmp_path: Path) -> None:
    """A file that is no database is neither opened nor overwritten."""
    path = tmp_path / "heed.db"
    path.write_bytes(b"a letter to my grandmother " * 200)
    with pytest.raises(DatabaseCorrupt, match="not a database"):
        SqliteFile(path).prepare()
    assert path.read_bytes().startswith(b"a letter")


@pytest.mark.parametrize("is_empty", [True, False], ids=["empty", "missing"])
@pytest.mark.parametrize("trace", ["marker", "adapters"])
def test_a_lost_database_is_not_a_new_one(tmp_path: Path, trace: str, is_empty: bool) -> None:
    """If heed has stored adapters or stopped cleanly, an empty or missing database is refused."""
    file = SqliteFile(tmp_path / "heed.db")
    if is_empty:
        file.path.touch()
    if trace == "marker":
        file.mark_clean()
    else:
        (tmp_path / "adapters" / "ana").mkdir(parents=True)
    with pytest.raises(DatabaseMissing, match="Restore the database"):
        file.prepare()


def test_a_new_directory_gets_a_new_database(tmp_path: Path) -> None:
    """A first start, and one after a crash in the very first moment, begin with an empty file."""
    file = SqliteFile(tmp_path / "new" / "heed.db")
    file.prepare()
    file.prepare()
    assert file.path.read_bytes() == b""


def test_a_link_in_place_of_the_database_is_not_followed(tmp_path: Path) -> None:
    """A new database is not created through a planted link."""
    (tmp_path / "heed.db").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(StorageNotWritable):
        SqliteFile(tmp_path / "heed.db").prepare()
    assert not (tmp_path / "elsewhere").exists()


def test_a_backup_holds_what_is_still_in_the_log(tmp_path: Path) -> None:
    """The copy is complete while the original is open, for the owner only, and the older copy is gone."""
    file = _filled(tmp_path / "heed.db")
    with _engine(file.writer_engine()) as engine:
        with engine.begin() as connection:
            connection.exec_driver_sql("INSERT INTO t (text) VALUES ('newest')")
        file.backup("0001-before-0002")
        copy = file.backup("0002-before-0003")
    assert [path.name for path in (tmp_path / "backups").iterdir()] == ["heed-0002-before-0003.db"]
    assert stat.S_IMODE(copy.stat().st_mode) == 0o600
    with contextlib.closing(sqlite3.connect(copy)) as connection:
        assert connection.execute("SELECT count(*) FROM t WHERE text = 'newest'").fetchone() == (1,)
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)


def test_removing_backups_leaves_none(tmp_path: Path) -> None:
    """No copy made before an upgrade outlives an erasure."""
    file = _filled(tmp_path / "heed.db")
    file.backup("0001-before-0002")
    file.remove_backups()
    assert list((tmp_path / "backups").iterdir()) == []


def test_emptying_the_log_waits_for_readers_and_then_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """While a reader holds an old snapshot the log cannot be emptied: DatabaseBusy; afterwards it is empty."""
    monkeypatch.setattr(sqlite, "BUSY_TIMEOUT_MS", 50)
    file = _filled(tmp_path / "heed.db")
    with _engine(file.writer_engine()) as writer, _engine(file.reader_engine(1)) as readers:
        with readers.connect() as reader:
            reader.exec_driver_sql("SELECT count(*) FROM t").scalar()
            with writer.begin() as connection:
                connection.exec_driver_sql("INSERT INTO t (text) VALUES ('x')")
            with pytest.raises(DatabaseBusy, match="reading"):
                sqlite.truncate_wal(writer)
        sqlite.truncate_wal(writer)
        assert (tmp_path / "heed.db-wal").stat().st_size == 0


def test_rows_that_refer_to_nothing_stop_a_migration(store: Store) -> None:
    """The check before a migration's commit finds a broken reference by its table."""
    engine = SqliteFile(store.data_dir / "heed.db").writer_engine(has_foreign_keys=False)
    with _engine(engine), engine.connect() as connection, connection.begin() as transaction:
        sqlite.check_references(connection)
        connection.exec_driver_sql("INSERT INTO identity VALUES ('http', 'ana', 'nobody')")
        with pytest.raises(DatabaseCorrupt, match="identity"):
            sqlite.check_references(connection)
        transaction.rollback()


def _error(code: int) -> sqlite3.OperationalError:
    error = sqlite3.OperationalError("said SQLite")
    error.sqlite_errorcode = code
    return error


@pytest.mark.parametrize(
    ("code", "leaf"),
    [
        (sqlite3.SQLITE_FULL, StorageFull),
        (sqlite3.SQLITE_IOERR_WRITE, StorageBroken),
        (sqlite3.SQLITE_READONLY_DBMOVED, StorageNotWritable),
        (sqlite3.SQLITE_CANTOPEN, StorageNotWritable),
        (sqlite3.SQLITE_CORRUPT_INDEX, DatabaseCorrupt),
        (sqlite3.SQLITE_NOTADB, DatabaseCorrupt),
        (sqlite3.SQLITE_BUSY_SNAPSHOT, DatabaseBusy),
    ],
)
def test_error_codes_get_the_name_of_their_remedy(code: int, leaf: type[StorageError]) -> None:
    """Extended codes too are named by what a person can do about them, with the path."""
    named = sqlite.named_error(_error(code), "/data/heed.db")
    assert type(named) is leaf
    assert "/data/heed.db" in str(named)


def test_a_hidden_cause_is_named() -> None:
    """The full disk behind a failed ROLLBACK TO SAVEPOINT is what the caller hears of."""
    arrived = _error(sqlite3.SQLITE_ERROR)
    arrived.__context__ = _error(sqlite3.SQLITE_FULL)
    assert type(sqlite.named_error(arrived, "x")) is StorageFull


def test_a_write_on_a_reader_is_our_own_fault() -> None:
    """The same SQLite code means another remedy on a reader."""
    assert type(sqlite.named_error(_error(sqlite3.SQLITE_READONLY), "x", is_reader=True)) is WriteInRead


@pytest.mark.parametrize("error", [_error(sqlite3.SQLITE_ERROR), ValueError("x"), sqlite3.ProgrammingError("x")])
def test_programming_errors_have_no_remedy(error: Exception) -> None:
    """A wrong statement is not dressed up as trouble with the disk."""
    assert sqlite.named_error(error, "x") is None


def test_a_copy_is_made_beside_a_writer_and_read_without_a_trace(tmp_path: Path) -> None:
    """It has what was committed, not what was not; looking at it leaves no file."""
    file = _filled(tmp_path / "heed.db")
    (tmp_path / "copies").mkdir()
    with _engine(file.writer_engine()) as engine, engine.begin() as connection:
        connection.exec_driver_sql("DELETE FROM t")
        sqlite.copy(file.path, tmp_path / "copies" / "copy.db")
    sqlite.check_copy(tmp_path / "copies" / "copy.db")
    with sqlite.looking_at(tmp_path / "copies" / "copy.db") as copied:
        assert copied.execute("SELECT count(*) FROM t").fetchone() == (2000,)
    assert [path.name for path in (tmp_path / "copies").iterdir()] == ["copy.db"]


def test_a_damaged_copy_is_found(tmp_path: Path) -> None:
    """In its pages, and in what its rows refer to."""
    _filled(tmp_path / "heed.db")
    sqlite.copy(tmp_path / "heed.db", tmp_path / "copy.db")
    with contextlib.closing(sqlite3.connect(tmp_path / "copy.db")) as connection:
        connection.execute("CREATE TABLE u (t_id INTEGER REFERENCES t (id))")
        connection.execute("INSERT INTO u VALUES (99999)")
        connection.commit()
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    with pytest.raises(DatabaseCorrupt, match=r"refer to nothing in \['u'\]"):
        sqlite.check_copy(tmp_path / "copy.db")
    _damage(tmp_path / "copy.db")
    with pytest.raises(DatabaseCorrupt):
        sqlite.check_copy(tmp_path / "copy.db")


def test_what_a_killed_backup_left_goes_at_the_next_start(tmp_path: Path) -> None:
    """And with the next erasure: there are people's words in it."""
    file = SqliteFile(tmp_path / "heed.db")
    for clear in (file.prepare, file.remove_backups):
        left = tmp_path / "backups" / ".heed-tmp-1234"
        left.mkdir(parents=True)
        (left / "heed.db").write_bytes(b"words")
        clear()
        assert list((tmp_path / "backups").iterdir()) == []
