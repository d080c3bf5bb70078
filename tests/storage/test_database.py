"""Opening, reading, writing and closing a database."""

import asyncio
import contextlib
import os
import sqlite3
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from sqlmodel import Session

from storage import settings
from storage.conversations import completions
from storage.database import NUM_READERS, Database, file_of
from storage.errors import (
    DatabaseClosed,
    DatabaseCorrupt,
    DatabaseElsewhere,
    DriverMissing,
    StorageError,
    StorageNotWritable,
    WriteInRead,
)
from storage.people import people
from tests.patience import PATIENCE_S
from tests.storage import rows
from tests.storage.conftest import Store
from tests.storage.stored import all_ids


@contextlib.contextmanager
def _without_privileges() -> Iterator[None]:
    """Drop root's privileges for a moment: root may write anywhere."""
    is_root = os.geteuid() == 0
    if is_root:
        os.seteuid(65534)
    try:
        yield
    finally:
        if is_root:
            os.seteuid(0)


def _names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


def test_everything_is_there_after_a_restart(store: Store, ana: str) -> None:
    """Token ids, log-probabilities, messages and flags come back as they were stored."""
    answer = rows.completion(ana, "żółw \U0001f422", logprobs=[-0.1234567890123, 0.0], notes=["no emoji"], is_gold=True)
    store.write(lambda s: completions.add(s, answer))
    store.reopen()
    back = store.read(lambda s: completions.get(s, ana, answer.id))
    assert back.model_dump(exclude={"seq"}) == answer.model_dump(exclude={"seq"})


def test_rows_that_come_back_can_be_used_without_a_session(store: Store, ana: str) -> None:
    """Every field of a row from write and from read is loaded after the session has gone."""
    written = store.write(lambda s: people.set_persona(s, ana, "a pirate"))
    read = store.read(lambda s: people.get(s, ana))
    assert written.model_dump() == read.model_dump()
    assert read.persona == "a pirate"


async def test_a_read_sees_every_acknowledged_write(database: Database) -> None:
    """An awaited write is visible to the very next read, in whichever reader it runs."""
    for n in range(1, 30):
        await database.write(lambda s, n=n: settings.put(s, "n", n))
        seen = await asyncio.gather(*(database.read(lambda s: settings.get(s, "n")) for _ in range(NUM_READERS)))
        assert seen == [n] * NUM_READERS


async def test_a_read_sees_one_snapshot(database: Database) -> None:
    """A commit in the middle of a read does not show in its second query."""
    await database.write(lambda s: settings.put(s, "n", 1))
    inside, go_on = threading.Event(), threading.Event()

    def work(s: Session) -> tuple[object, object]:
        first = settings.get(s, "n")
        inside.set()
        go_on.wait(PATIENCE_S)
        s.expire_all()
        return first, settings.get(s, "n")

    reading = asyncio.ensure_future(database.read(work))
    await asyncio.to_thread(inside.wait, PATIENCE_S)
    await database.write(lambda s: settings.put(s, "n", 2))
    go_on.set()
    assert await reading == (1, 1)


async def test_the_event_loop_runs_while_the_database_works(database: Database) -> None:
    """Neither a long read nor a long write keeps the loop from running."""
    go_on = threading.Event()
    working = [
        asyncio.ensure_future(database.write(lambda s: go_on.wait(PATIENCE_S))),
        asyncio.ensure_future(database.read(lambda s: go_on.wait(PATIENCE_S))),
    ]
    await asyncio.sleep(0.05)
    assert not any(task.done() for task in working)
    go_on.set()
    assert await asyncio.gather(*working) == [True, True]


async def test_a_read_cannot_write(database: Database) -> None:
    """A change in a read is refused with the remedy, and nothing changes."""
    with pytest.raises(WriteInRead, match=r"Database\.write"):
        await database.read(lambda s: (people.resolve(s, "http", "ana"), s.flush()))
    assert await database.read(all_ids) == []


async def test_errors_of_a_work_arrive_unchanged(database: Database) -> None:
    """A lookup that fails raises its own error from read and from write."""
    for call in (database.read, database.write):
        with pytest.raises(StorageError) as caught:
            await call(lambda s: people.get(s, "nobody"))
        assert type(caught.value).__name__ == "PersonNotFound"


async def test_a_cancelled_read_harms_nobody(database: Database) -> None:
    """Readers whose callers went away serve the next ones."""
    go_on = threading.Event()
    tasks = [asyncio.ensure_future(database.read(lambda s: go_on.wait(PATIENCE_S))) for _ in range(3 * NUM_READERS)]
    await asyncio.sleep(0.05)
    for task in tasks:
        task.cancel()
    go_on.set()
    assert await database.read(all_ids) == []


def test_it_works_with_one_event_loop_after_another(tmp_path: Path) -> None:
    """A database may outlive the loop it was first used from."""
    database = Database.open(tmp_path)
    asyncio.run(database.write(lambda s: settings.put(s, "n", 1)))
    assert asyncio.run(database.read(lambda s: settings.get(s, "n"))) == 1
    asyncio.run(database.close())


async def test_closing_twice_is_harmless_and_using_it_afterwards_is_named(database: Database) -> None:
    """After close every call raises DatabaseClosed."""
    await asyncio.gather(database.close(), database.close())
    with pytest.raises(DatabaseClosed):
        await database.read(all_ids)
    with pytest.raises(DatabaseClosed):
        await database.write(all_ids)
    with pytest.raises(DatabaseClosed):
        await database.checkpoint()


async def test_a_clean_stop_leaves_one_file_and_the_marker(tmp_path: Path) -> None:
    """The log is folded in on close; opening takes the marker away again."""
    database = Database.open(tmp_path)
    await database.write(lambda s: settings.put(s, "n", 1))
    assert not (tmp_path / "heed.db.clean").exists()
    await database.close()
    assert _names(tmp_path) == {"heed.db", "heed.db.clean"}


async def test_a_cancelled_close_closes_all_the_same(tmp_path: Path) -> None:
    """Cancelling close, even before it could begin, does not leave the database open."""
    database = Database.open(tmp_path)
    asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(1))
    go_on = threading.Event()
    busy = asyncio.ensure_future(asyncio.to_thread(go_on.wait, PATIENCE_S))
    closing = asyncio.ensure_future(database.close())
    await asyncio.sleep(0.05)
    closing.cancel()
    with pytest.raises(asyncio.CancelledError):
        await closing
    go_on.set()
    await busy
    await asyncio.to_thread(lambda: None)  # the one thread has come through what was queued before
    assert _names(tmp_path) == {"heed.db", "heed.db.clean"}


def test_a_damaged_file_is_refused_after_a_crash(store: Store) -> None:
    """A start after a crash checks the file and names the remedy."""
    store.close()
    path = store.data_dir / "heed.db"
    (store.data_dir / "heed.db.clean").unlink()
    content = bytearray(path.read_bytes())
    content[4096 * 2 : 4096 * 6] = b"\xff" * 4096 * 4
    path.write_bytes(content)
    with pytest.raises(DatabaseCorrupt, match="restore the file from a backup"):
        Database.open(store.data_dir)
    assert path.read_bytes() == content


async def test_damage_found_later_is_named_too(tmp_path: Path) -> None:
    """Damage that a clean stop hid is DatabaseCorrupt for the read that meets it."""
    database = Database.open(tmp_path)
    await database.write(lambda s: people.resolve(s, "http", "ana"))
    await database.close()
    path = tmp_path / "heed.db"
    with contextlib.closing(sqlite3.connect(path)) as connection:
        (page,) = connection.execute("SELECT rootpage FROM sqlite_master WHERE name = 'user'").fetchone()
    content = bytearray(path.read_bytes())
    content[4096 * (page - 1) : 4096 * page] = b"\xff" * 4096
    path.write_bytes(content)
    damaged = Database.open(tmp_path)
    with pytest.raises(DatabaseCorrupt, match="restore the file"):
        await damaged.read(all_ids)
    await damaged.close()


def test_a_data_directory_without_permission_is_named(tmp_path: Path) -> None:
    """If heed may not write, opening fails with the path and makes nothing."""
    (tmp_path / "data").mkdir(mode=0o500)
    with _without_privileges(), pytest.raises(StorageNotWritable, match=r"data.*HEED_DATA_DIR"):
        Database.open(tmp_path / "data")
    assert list((tmp_path / "data").iterdir()) == []


def test_a_data_directory_that_is_a_file_is_named(tmp_path: Path) -> None:
    """A plain file in place of the data directory is refused."""
    (tmp_path / "data").touch()
    with pytest.raises(StorageNotWritable, match="is not a directory"):
        Database.open(tmp_path / "data")


@pytest.mark.sqlite_only
async def test_a_database_that_became_read_only_is_named(database: Database) -> None:
    """A write that SQLite refuses as read-only is StorageNotWritable with the remedy; reads go on."""
    await database.write(lambda s: s.connection().exec_driver_sql("PRAGMA query_only = ON"))
    with pytest.raises(StorageNotWritable, match="HEED_DATA_DIR"):
        await database.write(lambda s: settings.put(s, "n", 1))
    assert await database.read(lambda s: settings.get(s, "n")) is None


async def test_any_path_will_do(tmp_path: Path) -> None:
    """Spaces, signs that mean something in URLs and configuration files, and other alphabets are just names."""
    data_dir = tmp_path / "dä ta%20#?&:x"
    for n in range(2):
        database = Database.open(data_dir)
        assert await database.read(lambda s: settings.get(s, "n", 0)) == n
        await database.write(lambda s: settings.put(s, "n", 1))
        await database.close()
        (data_dir / "heed.db.clean").unlink()
    assert _names(data_dir) == {"heed.db"}


async def test_a_sqlite_url_names_the_file(tmp_path: Path) -> None:
    """HEED_DATABASE_URL may put the SQLite file elsewhere."""
    database = Database.open(tmp_path / "data", f"sqlite:///{tmp_path}/elsewhere/other.db")
    await database.write(lambda s: settings.put(s, "n", 1))
    await database.close()
    assert _names(tmp_path / "elsewhere") == {"other.db", "other.db.clean"}


@pytest.mark.parametrize("url", ["postgresql+nosuchdriver://heed:secret@localhost/heed", "nosuchdatabase://x/y", "???"])
def test_a_url_without_a_driver_is_named_without_its_password(tmp_path: Path, url: str) -> None:
    """A URL heed cannot serve says what is missing and does not repeat the password."""
    with pytest.raises(DriverMissing, match="driver") as caught:
        Database.open(tmp_path, url)
    assert "secret" not in str(caught.value)


@pytest.mark.sqlite_only
async def test_checkpoint_empties_the_log_between_writes(database: Database, data_dir: Path) -> None:
    """After a checkpoint the write-ahead log holds nothing, also while others write."""
    log = data_dir / "heed.db-wal"
    writes = [database.write(lambda s, n=n: settings.put(s, str(n), n)) for n in range(20)]
    await asyncio.gather(*writes, database.checkpoint())
    await database.checkpoint()
    assert log.stat().st_size == 0
    assert await database.read(lambda s: settings.get(s, "19")) == 19


def test_the_file_of_a_database_is_known(tmp_path: Path) -> None:
    """In the data directory or where a URL says; a database server has none, and its password is not shown."""
    assert file_of(tmp_path) == tmp_path / "heed.db"
    assert file_of(tmp_path, f"sqlite:///{tmp_path}/other.db") == tmp_path / "other.db"
    with pytest.raises(DatabaseElsewhere, match="pg_dump") as refused:
        file_of(tmp_path, "postgresql://ana:secret@127.0.0.1/heed")
    assert "secret" not in str(refused.value)
