"""storage.backup.snapshot: the database and the adapters that belong to it, at one moment."""

import asyncio
import shutil
import threading
from pathlib import Path

import pytest

from storage.backup import snapshot
from storage.database import Database
from storage.errors import DatabaseCorrupt, DatabaseMissing, SnapshotErased, StorageNotWritable
from storage.files import atomic
from storage.people import people
from storage.people.erasure import forget_person
from storage.sql import sqlite
from storage.tables import AdapterVersion
from tests.storage.taught import FILES, prune, teach

pytestmark = pytest.mark.sqlite_only  # a server is backed up with its own tools


async def ana(database: Database) -> str:
    """A person's id."""
    return (await database.write(lambda s: people.resolve(s, "http", "ana"))).id


async def test_it_holds_what_the_copied_database_names(database: Database, data_dir: Path) -> None:
    """Accepted versions with their files; what is pruned or only a candidate is not in it."""
    user_id = await ana(database)
    for number in range(4):
        await teach(database, data_dir, user_id, b"%d" % number)
    await prune(database, data_dir, user_id, keep=2)
    with snapshot.taken(data_dir / sqlite.FILE_NAME, data_dir) as taken:
        found = {version.path: atomic.read_directory(folder) for folder, version in taken.versions.items()}
        assert taken.missing == ()
        assert taken.size_bytes > sum(version.size_bytes for version in taken.versions.values())
    assert found == {
        f"adapters/{user_id}/3": dict.fromkeys(FILES, b"2"),
        f"adapters/{user_id}/4": dict.fromkeys(FILES, b"3"),
    }


async def test_nothing_of_it_is_left(database: Database, data_dir: Path) -> None:
    """Neither where the block ends nor where it fails."""
    for error in (None, ZeroDivisionError()):
        with pytest.raises(ZeroDivisionError), snapshot.taken(data_dir / sqlite.FILE_NAME, data_dir):
            raise error or ZeroDivisionError
    with snapshot.taken(data_dir / sqlite.FILE_NAME, data_dir):
        pass
    assert list((data_dir / sqlite.BACKUP_FOLDER).iterdir()) == []


async def test_what_is_pruned_meanwhile_is_asked_for_in_a_newer_copy(
    database: Database, data_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A version that goes between the copy and its linking is named no more, and newer ones are there."""
    user_id = await ana(database)
    first = await teach(database, data_dir, user_id, b"first")
    num_copies = 0
    copy = sqlite.copy

    def copy_and_prune(source: Path, target: Path) -> None:
        nonlocal num_copies
        num_copies += 1
        copy(source, target)
        if num_copies == 1:
            _teach_and_prune_beside(database, data_dir, user_id)

    monkeypatch.setattr(sqlite, "copy", copy_and_prune)
    with snapshot.taken(data_dir / sqlite.FILE_NAME, data_dir, sleep=lambda _: None) as taken:
        paths = [version.path for version in taken.versions.values()]
    assert (num_copies, taken.missing) == (2, ())
    assert first.path not in paths
    assert len(paths) == 2


def _teach_and_prune_beside(database: Database, data_dir: Path, user_id: str) -> None:
    """Two more versions, and only they stay; from a thread that runs no loop of its own."""

    async def work() -> None:
        for content in (b"second", b"third"):
            await teach(database, data_dir, user_id, content)
        await prune(database, data_dir, user_id, keep=2)

    thread = threading.Thread(target=lambda: asyncio.run(work()))
    thread.start()
    thread.join()


async def test_what_is_missing_for_good_is_named(database: Database, data_dir: Path) -> None:
    """The database says that its files are there, in one copy after another, and they are not."""
    user_id = await ana(database)
    gone, there = [await teach(database, data_dir, user_id, content) for content in (b"gone", b"there")]
    shutil.rmtree(data_dir / gone.path)
    with snapshot.taken(data_dir / sqlite.FILE_NAME, data_dir, sleep=lambda _: None) as taken:
        assert [version.path for version in taken.missing] == [gone.path]
        assert [version.path for version in taken.versions.values()] == [there.path]


async def test_erasing_a_person_takes_it_away(database: Database, data_dir: Path) -> None:
    """Reading a snapshot after an erasure raises an error of its own."""
    user_id = await ana(database)
    await teach(database, data_dir, user_id, b"hers")

    async def erased_while_read() -> None:
        with snapshot.taken(data_dir / sqlite.FILE_NAME, data_dir) as taken:
            await forget_person(database, user_id)
            assert [path for path in (data_dir / sqlite.BACKUP_FOLDER).rglob("*") if path.is_file()] == []
            taken.database.read_bytes()

    with pytest.raises(SnapshotErased):
        await erased_while_read()


async def test_an_error_of_the_block_is_its_own(database: Database, data_dir: Path) -> None:
    """A full disk elsewhere is not taken for an erasure."""
    with pytest.raises(FileNotFoundError), snapshot.taken(data_dir / sqlite.FILE_NAME, data_dir):
        (data_dir / "nothing").read_bytes()


def test_without_a_database_there_is_nothing(tmp_path: Path) -> None:
    """A folder that heed never used is refused by name, and stays as it was."""
    with pytest.raises(DatabaseMissing, match="nothing to back up"), snapshot.taken(tmp_path / "heed.db", tmp_path):
        pass
    assert list(tmp_path.iterdir()) == []


def test_a_database_that_may_not_be_read_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another account's data directory is refused with its path."""

    def denied(self: Path, **_: bool) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "stat", denied)
    with pytest.raises(StorageNotWritable, match="Permission denied"), snapshot.taken(tmp_path / "heed.db", tmp_path):
        pass


def test_what_a_database_says_is_checked(tmp_path: Path) -> None:
    """A path that leads elsewhere and a foreign database are refused."""
    database = tmp_path / "other.db"
    database.write_bytes(b"")
    with pytest.raises(DatabaseCorrupt, match="no database of heed's"):
        snapshot.read_schema(database)


async def test_a_path_that_leads_elsewhere_is_refused(database: Database, data_dir: Path, tmp_path: Path) -> None:
    """A row that names another folder than a version's."""
    version = await teach(database, data_dir, await ana(database), b"hers")
    await database.write(lambda s: _move(s.get(AdapterVersion, version.lora_int_id)))
    copied = tmp_path / "copy.db"
    copied.touch()
    sqlite.copy(data_dir / sqlite.FILE_NAME, copied)
    with pytest.raises(DatabaseCorrupt, match="as an adapter's folder"):
        snapshot.read_versions(copied)


def _move(version: AdapterVersion | None) -> None:
    assert version is not None
    version.path = "adapters/../../home"
