"""storage.backup.create: a backup of a heed that goes on, and what is in it. What damage does to one: test_restore."""

import asyncio
import contextlib
import hashlib
import os
import random
import stat
import time
import zipfile
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from storage.backup import create, manifest, restore
from storage.backup.create import CHUNK_BYTES
from storage.backup.manifest import Manifest
from storage.conversations import completions
from storage.database import Database
from storage.errors import AlreadyWritten, DatabaseMissing, SnapshotErased
from storage.files import atomic
from storage.kinds import VersionState
from storage.learning import versions
from storage.people import people, personal_data
from storage.people.erasure import forget_person
from storage.sql import sqlite
from storage.sql.sqlite import BACKUP_FOLDER, FILE_NAME
from tests.patience import PATIENCE_S, until
from tests.storage import rows
from tests.storage.stored import all_ids, directory_sha256
from tests.storage.taught import prune, teach

pytestmark = pytest.mark.sqlite_only  # a server is backed up with its own tools

VERSION = "9.9"
PEOPLE = ("ana", "ben", "eve")


def quiet(*_: int) -> None:
    """Ignore the progress."""


def write(data_dir: Path, target: Path) -> Manifest:
    """A backup of a data directory."""
    return create.write(data_dir / FILE_NAME, data_dir, target, VERSION, quiet)


class Busy:
    """People who talk and teach all the time, and what of it was acknowledged."""

    def __init__(self, database: Database, data_dir: Path) -> None:
        self.database = database
        self.data_dir = data_dir
        self.said: dict[str, list[str]] = {}
        self.num_pruned = 0

    async def talk(self, account: str) -> None:
        """Answers, one after another."""
        user_id = (await self.database.write(lambda s: people.resolve(s, "http", account))).id
        acknowledged = self.said.setdefault(user_id, [])
        while True:
            row = rows.completion(user_id, f"{account} {len(acknowledged)}")
            acknowledged.append((await self.database.write(lambda s, r=row: completions.add(s, r))).id)

    async def learn(self, account: str) -> None:
        """Versions, of which two stay."""
        user_id = (await self.database.write(lambda s: people.resolve(s, "http", account))).id
        while True:
            await teach(self.database, self.data_dir, user_id, os.urandom(2000))
            await prune(self.database, self.data_dir, user_id, keep=2)
            self.num_pruned += 1


@contextlib.asynccontextmanager
async def busy(database: Database, data_dir: Path) -> AsyncIterator[Busy]:
    """A heed that much happens to."""
    work = Busy(database, data_dir)
    tasks = [asyncio.create_task(do(account)) for account in PEOPLE for do in (work.talk, work.learn)]
    try:
        await until(lambda: work.num_pruned > 4 * len(PEOPLE))
        yield work
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


class SlowCopies:
    """Before a backup uses its first copy of the database, versions that are named in it are pruned."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, work: Busy) -> None:
        self.num_copies = 0
        self._work = work
        self._copy = sqlite.copy
        monkeypatch.setattr(sqlite, "copy", self._copy_slowly)

    def _copy_slowly(self, source: Path, target: Path) -> None:
        self._copy(source, target)
        self.num_copies += 1
        if self.num_copies == 1:
            enough, deadline_s = self._work.num_pruned + len(PEOPLE) + 1, time.monotonic() + PATIENCE_S
            while self._work.num_pruned < enough:
                assert time.monotonic() < deadline_s
                time.sleep(0.001)


async def stored(data_dir: Path) -> tuple[dict[str, set[str]], dict[str, str]]:
    """Of everybody in a data directory the ids of their answers; of each version that can be served its SHA-256."""
    database = Database.open(data_dir)
    answers: dict[str, set[str]] = {}
    sums: dict[str, str] = {}
    for user_id in await database.read(all_ids):
        held = await database.read(lambda s, u=user_id: personal_data.everything(s, u))
        answers[user_id] = {row["id"] for row in held["completions"]}
        kept = [v for v in held["adapter_versions"] if v["state"] == VersionState.ACCEPTED]
        sums |= {v["path"]: v["sha256"] for v in kept}
    await database.close()
    return answers, sums


async def test_a_busy_heed_is_backed_up_whole(
    database: Database, data_dir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Restored elsewhere: every answer acknowledged before is there, every version has its bytes, three times over.

    Each time versions are pruned between the copy of the database and its adapters: a newer copy is taken.
    """
    async with busy(database, data_dir) as work:
        for number in range(3):
            before = {user_id: set(ids) for user_id, ids in work.said.items()}
            copies = SlowCopies(monkeypatch, work)
            target = tmp_path / f"{number}.zip"
            written = await asyncio.to_thread(write, data_dir, target)
            assert copies.num_copies > 1
            monkeypatch.undo()
            restored = tmp_path / f"restored {number}"
            assert await asyncio.to_thread(restore.restore, target, restored, quiet) == written
            answers, sums = await stored(restored)
            assert written.missing == ()
            assert all(ids <= answers[user_id] for user_id, ids in before.items())
            assert {path: directory_sha256(restored / path) for path in sums} == sums
            assert written.num_versions == len(sums) >= len(PEOPLE)
    assert [path.name for path in (data_dir / BACKUP_FOLDER).iterdir()] == []


async def test_it_says_what_is_in_it(database: Database, data_dir: Path, tmp_path: Path) -> None:
    """A backup names its writer, the schema and the SHA-256 of every file, and only its owner may read it."""
    user_id = (await database.write(lambda s: people.resolve(s, "http", "ana"))).id
    version = await teach(database, data_dir, user_id, b"hers")
    target = tmp_path / "new" / "backup.zip"
    done: list[tuple[int, int]] = []
    written = create.write(data_dir / FILE_NAME, data_dir, target, VERSION, lambda *bytes_: done.append(bytes_))
    assert stat.S_IMODE(target.stat().st_mode) == 0o600
    with zipfile.ZipFile(target) as archive:
        assert manifest.parse(archive.read("manifest.json")) == written
        names = set(archive.namelist()) - {"manifest.json"}
        sums = {name: hashlib.sha256(archive.read(name)).hexdigest() for name in names}
        assert {entry.external_attr >> 16 for entry in archive.infolist()} == {0o600}
    assert sums == {name: file.sha256 for name, file in written.files.items()}
    assert names == {FILE_NAME, *(f"{version.path}/{name}" for name in os.listdir(data_dir / version.path))}  # noqa: PTH208
    assert written.heed_version == VERSION
    assert done[-1] == (written.size_bytes, written.size_bytes)


async def test_a_damaged_version_is_left_out_by_name(database: Database, data_dir: Path, tmp_path: Path) -> None:
    """The rest is backed up; the database's word for it is not taken."""
    user_id = (await database.write(lambda s: people.resolve(s, "http", "ana"))).id
    damaged, gone, good = [await teach(database, data_dir, user_id, b"%d" % n) for n in range(3)]
    (data_dir / damaged.path / "adapter_config.json").write_bytes(b"!")
    atomic.remove_directory(data_dir / gone.path)
    written = write(data_dir, tmp_path / "backup.zip")
    assert set(written.missing) == {damaged.path, gone.path}
    assert restore.restore(tmp_path / "backup.zip", tmp_path / "restored", quiet) == written
    assert [path.name for path in (tmp_path / "restored" / "adapters" / user_id).iterdir()] == [str(good.number)]


async def test_who_is_erased_meanwhile_is_not_in_it(
    database: Database, data_dir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A person erased during a backup is not in it: the backup begins again without their words."""
    ana = (await database.write(lambda s: people.resolve(s, "http", "ana"))).id
    await database.write(lambda s: completions.add(s, rows.completion(ana, "canary-5519")))
    await teach(database, data_dir, ana, b"canary-5519" * 100)
    loop = asyncio.get_running_loop()
    erasures: list[bool] = []
    read_directory = atomic.read_directory

    def erase_first(path: Path) -> dict[str, bytes]:
        if not erasures:
            erasures.append(asyncio.run_coroutine_threadsafe(forget_person(database, ana), loop).result())
        return read_directory(path)

    monkeypatch.setattr(atomic, "read_directory", erase_first)
    written = await asyncio.to_thread(write, data_dir, tmp_path / "backup.zip")
    assert erasures == [True]
    with zipfile.ZipFile(tmp_path / "backup.zip") as archive:
        assert [name for name in archive.namelist() if b"canary-5519" in archive.read(name)] == []
    assert b"canary-5519" not in (tmp_path / "backup.zip").read_bytes()
    assert written.num_versions == 0


async def test_one_that_never_ends_is_given_up(
    database: Database, data_dir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If every snapshot is erased while it is read, the backup ends with an error and leaves nothing."""

    def erased(*_: object) -> None:
        raise SnapshotErased("gone")

    monkeypatch.setattr(create, "_pack", erased)
    with pytest.raises(SnapshotErased, match="again and again"):
        write(data_dir, tmp_path / "backup.zip")
    assert [path.name for path in tmp_path.iterdir() if "backup" in path.name] == []  # noqa: ASYNC240  its own folder


async def test_nothing_is_written_over(database: Database, data_dir: Path, tmp_path: Path) -> None:
    """A file that is there stays."""
    (tmp_path / "backup.zip").write_bytes(b"an older one")
    with pytest.raises(AlreadyWritten):
        write(data_dir, tmp_path / "backup.zip")
    assert (tmp_path / "backup.zip").read_bytes() == b"an older one"


def test_nothing_to_back_up_leaves_nothing(tmp_path: Path) -> None:
    """A data directory that was never used."""
    with pytest.raises(DatabaseMissing):
        write(tmp_path / "data", tmp_path / "backup.zip")
    assert list(tmp_path.iterdir()) == []


async def test_a_heed_that_does_not_run_is_backed_up_too(data_dir: Path, tmp_path: Path) -> None:
    """Also one that was killed: what is only in the write-ahead log is there."""
    database = Database.open(data_dir)
    ana = (await database.write(lambda s: people.resolve(s, "http", "ana"))).id
    killed = tmp_path / "killed"
    await asyncio.to_thread(os.system, f"cp -r '{data_dir}' '{killed}'")
    await database.close()
    assert (killed / f"{FILE_NAME}-wal").stat().st_size > 0
    write(killed, tmp_path / "backup.zip")
    restore.restore(tmp_path / "backup.zip", tmp_path / "restored", quiet)
    assert (await stored(tmp_path / "restored"))[0] == {ana: set()}


async def test_a_large_database_goes_through_in_pieces(database: Database, data_dir: Path, tmp_path: Path) -> None:
    """More than one piece, and equal to the last byte after all of it."""
    ana = (await database.write(lambda s: people.resolve(s, "http", "ana"))).id
    text = random.Random(1).randbytes(CHUNK_BYTES).hex()
    await database.write(lambda s: completions.add(s, rows.completion(ana, text)))
    written = write(data_dir, tmp_path / "backup.zip")
    assert written.files[FILE_NAME].size_bytes > 2 * CHUNK_BYTES
    assert restore.verify(tmp_path / "backup.zip", quiet) == written


async def test_versions_without_a_verdict_are_not_in_it(database: Database, data_dir: Path, tmp_path: Path) -> None:
    """A candidate dies with the heed that trains it, in a backup, too."""
    ana = (await database.write(lambda s: people.resolve(s, "http", "ana"))).id
    candidate = await database.write(lambda s: versions.allocate(s, ana, 0, "pocket", None, None))
    atomic.write_directory(data_dir / candidate.path, {"adapter_config.json": b"{}"})
    assert write(data_dir, tmp_path / "backup.zip").num_versions == 0
