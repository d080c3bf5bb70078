"""A data directory as it is at one moment, also while heed writes to it: the database copied, its adapters linked.

Owns the order that makes the two fit. The copy comes first, then the versions it names get a second name: versions are
immutable, and their rows are flipped before their files go. So what has gone meanwhile is named no more by a newer
copy, and what a newer copy still names and is not there is missing for good. Nothing waits for a snapshot, and erasing
a person erases it (`SqliteFile.remove_backups`): anyone who reads it then takes another one.
"""

import contextlib
import re
import shutil
import sqlite3
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from storage.errors import DatabaseCorrupt, DatabaseMissing, SnapshotErased, StorageError, StorageNotWritable
from storage.files import atomic
from storage.kinds import VersionState
from storage.sql import sqlite
from storage.tables import ADAPTERS_FOLDER

ROUNDS = 20  # copies of the database at most: a third only where versions come and go while one is made
PAUSE_S = 0.05
VERSION_PATH = re.compile(rf"{ADAPTERS_FOLDER}/[0-9A-Za-z]+/[0-9]+")

_VERSIONS = "SELECT path, sha256, size_bytes FROM adapter_version WHERE state = ? ORDER BY lora_int_id"


@dataclass(frozen=True)
class StoredVersion:
    """An accepted version's files as the database knows them. `path` is relative to the data directory."""

    path: str
    sha256: str
    size_bytes: int


@dataclass(frozen=True)
class BackupSnapshot:
    """A copy of the database; for each version it names a folder with its files, except those that are `missing`."""

    database: Path
    schema: str
    versions: dict[Path, StoredVersion]
    missing: tuple[StoredVersion, ...]

    @property
    def size_bytes(self) -> int:
        """Of all its files."""
        return self.database.stat().st_size + sum(version.size_bytes for version in self.versions.values())


@contextlib.contextmanager
def taken(database: Path, data_dir: Path, sleep: Callable[[float], None] = time.sleep) -> Iterator[BackupSnapshot]:
    """Provide a snapshot for the length of the block.

    Blocking: for a copy of the database. Raises DatabaseMissing, DatabaseCorrupt, storage's errors about the disk, and
    SnapshotErased, for which the block raises on finding its files gone.
    """
    _require(database)
    with atomic.temporary_directory(database.parent / sqlite.BACKUP_FOLDER) as folder:
        try:
            yield _settled(database, data_dir, folder, sleep)
        except (OSError, sqlite3.Error, StorageError) as error:
            if folder.exists():
                raise
            raise SnapshotErased("a person was erased while their data was read") from error


def _require(database: Path) -> None:
    try:
        if database.stat().st_size:
            return
    except (FileNotFoundError, NotADirectoryError):
        pass
    except OSError as error:
        raise StorageNotWritable(f"{database} cannot be read ({error.strerror})") from error
    raise DatabaseMissing(f"there is no {database}: nothing to back up")


def _settled(database: Path, data_dir: Path, folder: Path, sleep: Callable[[float], None]) -> BackupSnapshot:
    """Return a snapshot that misses only what the round before it missed, too."""
    copied, gone = folder / sqlite.FILE_NAME, set[StoredVersion]()
    for _ in range(ROUNDS):
        copied.unlink(missing_ok=True)
        with sqlite.naming_errors(database):
            sqlite.copy(database, copied)
        links = {version: folder / version.path.replace("/", "-") for version in read_versions(copied)}
        missing = [version for version, link in links.items() if not _is_linked(data_dir / version.path, link)]
        if gone.issuperset(missing):
            break
        gone = set(missing)
        sleep(PAUSE_S)
    there = {link: version for version, link in links.items() if version not in missing}
    return BackupSnapshot(copied, read_schema(copied), there, tuple(missing))


def read_versions(copied: Path) -> list[StoredVersion]:
    """Return the accepted versions that a copied database names. Raises DatabaseCorrupt."""
    with sqlite.looking_at(copied) as connection:
        found = [StoredVersion(*row) for row in connection.execute(_VERSIONS, (VersionState.ACCEPTED,))]
    for version in found:
        if not VERSION_PATH.fullmatch(version.path):
            raise DatabaseCorrupt(f"{copied.name} names {version.path!r} as an adapter's folder")
    return found


def read_schema(copied: Path) -> str:
    """Return the revision of a copied database. Raises DatabaseCorrupt."""
    with sqlite.looking_at(copied) as connection:
        has_table = connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'alembic_version'").fetchone()
        row = connection.execute("SELECT version_num FROM alembic_version").fetchone() if has_table else None
    if row is None:
        raise DatabaseCorrupt(f"{copied.name} is no database of heed's")
    return str(row[0])


def _is_linked(source: Path, target: Path) -> bool:
    """Return True if all files of a version could be linked: a name that is still there afterwards has lost none of
    them.
    """
    if target.is_dir():
        return True
    with contextlib.suppress(FileNotFoundError):
        atomic.link_directory(source, target)
        if source.is_dir():
            return True
    if not target.parent.is_dir():
        raise FileNotFoundError(f"{target.parent} is not there any more")  # the whole snapshot was erased
    shutil.rmtree(target, ignore_errors=True)
    return False
