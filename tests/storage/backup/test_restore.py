"""storage.backup.restore: a good backup becomes a data directory, and every kind of damage is refused by name."""

import asyncio
import hashlib
import json
import sqlite3
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from storage.backup import create, restore
from storage.database import Database
from storage.errors import (
    BackupDamaged,
    DataDirectoryLocked,
    DirectoryInUse,
    SchemaUnknown,
    StorageError,
    StorageFull,
    UnsafePath,
)
from storage.files import atomic
from storage.files.lock import DataDirectoryLock
from storage.people import people
from storage.sql.sqlite import FILE_NAME
from tests.storage.new_data_dir import copy_to
from tests.storage.taught import teach

Entries = dict[str, bytes]


def quiet(*_: int) -> None:
    """Ignore the progress."""


@pytest.fixture(scope="session")
def good(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A backup with two versions."""
    folder = tmp_path_factory.mktemp("good")
    data_dir = copy_to(folder / "data")

    async def fill() -> None:
        database = Database.open(data_dir)
        ana = (await database.write(lambda s: people.resolve(s, "http", "ana"))).id
        for content in (b"one" * 50, b"two" * 50):
            await teach(database, data_dir, ana, content)
        await database.close()

    asyncio.run(fill())
    create.write(data_dir / FILE_NAME, data_dir, folder / "backup.zip", "9.9", quiet)
    return folder / "backup.zip"


def changed(good: Path, target: Path, change: Callable[[Entries, dict[str, Any]], object]) -> Path:
    """Return a backup with changed files and manifest."""
    with zipfile.ZipFile(good) as archive:
        entries = {name: archive.read(name) for name in archive.namelist()}
    manifest = json.loads(entries.pop("manifest.json"))
    change(entries, manifest)
    with zipfile.ZipFile(target, "w") as archive:
        for name, content in entries.items():
            archive.writestr(name, content)
        archive.writestr("manifest.json", json.dumps(manifest))
    return target


def named(entries: Entries, manifest: dict[str, Any], name: str, content: bytes) -> None:
    """In place: a file with everything the manifest has to say of it."""
    entries[name] = content
    manifest["files"][name] = {"sha256": hashlib.sha256(content).hexdigest(), "size_bytes": len(content)}


def a_version_file(entries: Entries) -> str:
    """The name of a file of the first version."""
    return min(name for name in entries if name.startswith("adapters/"))


def flip(entries: Entries, name: str) -> None:
    """In place: one bit of a file."""
    content = bytearray(entries[name])
    content[len(content) // 2] ^= 1
    entries[name] = bytes(content)


def with_sql(entries: Entries, manifest: dict[str, Any], statement: str, folder: Path) -> None:
    """In place: change a database, and its checksum with it."""
    path = folder / "changed.db"
    path.write_bytes(entries[FILE_NAME])
    connection = sqlite3.connect(path)
    connection.executescript(statement)
    connection.execute("PRAGMA journal_mode=DELETE")
    connection.close()
    named(entries, manifest, FILE_NAME, path.read_bytes())
    path.unlink()


def drop_a_version(entries: Entries, manifest: dict[str, Any]) -> None:
    """In place: without one file of a version, in the manifest, too."""
    name = a_version_file(entries)
    del entries[name], manifest["files"][name]


def swap_versions(entries: Entries, manifest: dict[str, Any]) -> None:
    """In place: a version with the bytes of another, and a manifest that agrees."""
    name = a_version_file(entries)
    named(entries, manifest, name, b"own" * 50)


def tear_pages(entries: Entries, manifest: dict[str, Any]) -> None:
    """In place: a database whose pages are no pages, and a manifest that agrees."""
    content = bytearray(entries[FILE_NAME])
    for offset in range(4096 * 2, len(content) - 4096, 4096):
        content[offset : offset + 64] = b"\xff" * 64
    named(entries, manifest, FILE_NAME, bytes(content))


DAMAGE: dict[str, tuple[type[StorageError], str, Callable[[Entries, dict[str, Any]], object]]] = {
    "a bit of the database": (BackupDamaged, "heed.db", lambda e, _: flip(e, FILE_NAME)),
    "a bit of an adapter": (BackupDamaged, "adapters/", lambda e, _: flip(e, a_version_file(e))),
    "a shorter adapter": (BackupDamaged, "bytes long", lambda e, _: e.update({a_version_file(e): b"x"})),
    "another's adapter": (BackupDamaged, "not what the database says", swap_versions),
    "a file is missing": (BackupDamaged, "does not hold", lambda e, _: e.pop(a_version_file(e))),
    "a file of a version is missing": (BackupDamaged, "bytes large", drop_a_version),
    "a file too many": (BackupDamaged, "does not hold", lambda e, _: e.update({"adapters/a/9/x": b"x"})),
    "a version too many": (BackupDamaged, "does not know", lambda e, m: named(e, m, "adapters/a/9/x", b"x")),
    "the pages of the database": (BackupDamaged, "database", tear_pages),
    "no database of heed's": (BackupDamaged, "database", lambda e, m: named(e, m, FILE_NAME, b"")),
    "another schema": (BackupDamaged, "schema", lambda _, m: m.update(schema_revision="0001")),
    "a newer schema": (SchemaUnknown, "newer than this heed", lambda _, m: m.update(schema_revision="9999")),
    "a newer form": (SchemaUnknown, "heed backup 2", lambda _, m: m.update(format="heed backup 2")),
    "a way out": (UnsafePath, "no file of a data directory", lambda e, m: named(e, m, "../../evil", b"x")),
    "a way out that is only packed": (UnsafePath, "/etc/evil", lambda e, _: e.update({"/etc/evil": b"x"})),
}


@pytest.mark.parametrize("kind", DAMAGE)
def test_damage_is_refused_by_name(good: Path, tmp_path: Path, kind: str) -> None:
    """Looking and restoring both refuse it, and neither leaves anything behind."""
    error, words, change = DAMAGE[kind]
    damaged = changed(good, tmp_path / "damaged.zip", change)
    with pytest.raises(error, match=words):
        restore.verify(damaged, quiet)
    with pytest.raises(error, match=words):
        restore.restore(damaged, tmp_path / "parent" / "data", quiet)
    assert [path.name for path in tmp_path.rglob("*")] == ["damaged.zip"]


def test_a_database_without_tables_is_refused(good: Path, tmp_path: Path) -> None:
    """It says which schema it has, and has nothing of it."""
    statement = "DROP TABLE adapter_version"
    damaged = changed(good, tmp_path / "damaged.zip", lambda e, m: with_sql(e, m, statement, tmp_path))
    with pytest.raises(BackupDamaged, match="adapter_version"):
        restore.verify(damaged, quiet)
    assert [path.name for path in tmp_path.iterdir()] == ["damaged.zip"]


def test_rows_that_refer_to_nothing_are_refused(good: Path, tmp_path: Path) -> None:
    """The database as a whole is sound, and its content is not."""
    statement = "PRAGMA foreign_keys=OFF; DELETE FROM user"
    damaged = changed(good, tmp_path / "damaged.zip", lambda e, m: with_sql(e, m, statement, tmp_path))
    with pytest.raises(BackupDamaged, match="refer to nothing"):
        restore.restore(damaged, tmp_path / "data", quiet)
    assert not (tmp_path / "data").exists()


def test_another_way_of_packing_is_refused(good: Path, tmp_path: Path) -> None:
    """Some unpack gigabytes out of nothing."""
    with zipfile.ZipFile(good) as archive, zipfile.ZipFile(tmp_path / "xz.zip", "w", zipfile.ZIP_LZMA) as packed:
        for name in archive.namelist():
            packed.writestr(name, archive.read(name))
    with pytest.raises(BackupDamaged, match="packed"):
        restore.verify(tmp_path / "xz.zip", quiet)


@pytest.mark.parametrize("share", [0.0, 0.3, 0.9, 0.999])
def test_a_part_of_a_backup_is_refused(good: Path, tmp_path: Path, share: float) -> None:
    """A copy that broke off, wherever it did."""
    content = good.read_bytes()
    (tmp_path / "part.zip").write_bytes(content[: int(len(content) * share)])
    with pytest.raises(BackupDamaged, match=r"part\.zip"):
        restore.restore(tmp_path / "part.zip", tmp_path / "data", quiet)
    assert [path.name for path in tmp_path.iterdir()] == ["part.zip"]


def test_every_flipped_byte_is_seen_or_harmless(good: Path, tmp_path: Path) -> None:
    """Wherever it is in the file: either it is refused, or everything restored is what it was."""
    content = good.read_bytes()
    restore.restore(good, tmp_path / "good", quiet)
    expected = {p.relative_to(tmp_path / "good"): p.read_bytes() for p in _files(tmp_path / "good")}
    num_refused = 0
    for place in range(7, len(content), len(content) // 60):
        damaged = bytearray(content)
        damaged[place] ^= 0x10
        (tmp_path / "damaged.zip").write_bytes(damaged)
        target = tmp_path / f"data {place}"
        try:
            restore.restore(tmp_path / "damaged.zip", target, quiet)
        except StorageError:
            num_refused += 1
            assert not target.exists()
        else:
            assert {p.relative_to(target): p.read_bytes() for p in _files(target)} == expected
    assert num_refused > 50


def _files(data_dir: Path) -> list[Path]:
    return [path for path in data_dir.rglob("*") if path.is_file() and path.name != "heed.lock"]


def test_something_else_is_no_backup(tmp_path: Path) -> None:
    """A text, a folder, a missing file and a foreign zip file are refused as backups."""
    (tmp_path / "text").write_bytes(b"hello")
    with zipfile.ZipFile(tmp_path / "other.zip", "w") as archive:
        archive.writestr("readme", "hello")
    for name in ("text", "other.zip", "nothing"):
        with pytest.raises((BackupDamaged, UnsafePath)):
            restore.verify(tmp_path / name, quiet)
    with pytest.raises(BackupDamaged):
        restore.verify(tmp_path, quiet)


def test_a_directory_in_use_is_refused(good: Path, tmp_path: Path) -> None:
    """A directory with content is refused and stays as it is; so is a file."""
    (tmp_path / "used").mkdir()
    (tmp_path / "used" / "mine").write_bytes(b"x")
    for place in (tmp_path / "used", tmp_path / "used" / "mine"):
        with pytest.raises(DirectoryInUse):
            restore.restore(good, place, quiet)
    assert [path.name for path in (tmp_path / "used").iterdir()] == ["mine"]


def test_a_directory_that_a_heed_has_locked_is_refused(good: Path, tmp_path: Path) -> None:
    """One that is just starting there; its lock stays."""
    with DataDirectoryLock(tmp_path / "data"), pytest.raises(DataDirectoryLocked):
        restore.restore(good, tmp_path / "data", quiet)
    assert (tmp_path / "data" / "heed.lock").exists()


@pytest.mark.parametrize("num_moves", [0, 1])
def test_a_disk_that_fills_up_leaves_nothing(
    good: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, num_moves: int
) -> None:
    """Also where the adapters are at their place and the database is not; the empty directory is empty again."""
    (tmp_path / "data").mkdir()
    publish, done = atomic.publish_file, 0

    def fail(temporary: Path, path: Path) -> None:
        nonlocal done
        if path.parent == tmp_path / "data":
            if done == num_moves:
                raise StorageFull("no room")
            done += 1
        publish(temporary, path)

    monkeypatch.setattr(atomic, "publish_file", fail)
    with pytest.raises(StorageFull):
        restore.restore(good, tmp_path / "data", quiet)
    assert list((tmp_path / "data").iterdir()) == []


def test_a_good_one_is_restored(good: Path, tmp_path: Path) -> None:
    """Into a directory that is not there yet or is empty; modes are the owner's; progress ends at the whole."""
    (tmp_path / "empty").mkdir()
    done: list[tuple[int, int]] = []
    for place in (tmp_path / "new" / "data", tmp_path / "empty"):
        found = restore.restore(good, place, lambda *bytes_: done.append(bytes_))
        assert done[-1] == (found.size_bytes, found.size_bytes)
        assert {path.stat().st_mode & 0o077 for path in _files(place)} == {0}
        assert sorted(path.name for path in place.iterdir()) == ["adapters", "heed.db", "heed.lock"]
        asyncio.run(Database.open(place).close())
    with pytest.raises(DirectoryInUse):
        restore.restore(good, tmp_path / "empty", quiet)


def test_looking_at_one_leaves_nothing(good: Path) -> None:
    """Neither beside it nor in it."""
    before = good.read_bytes(), sorted(good.parent.iterdir())
    restore.verify(good, quiet)
    assert (good.read_bytes(), sorted(good.parent.iterdir())) == before
