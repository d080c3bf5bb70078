"""Reads a backup: checks one, or makes a data directory out of it.

Invariants: nothing is at its place before every SHA-256, the database and every adapter version were checked; the
database comes last, so that a data directory with one is complete; what fails leaves the directory as it was. Nothing
is extracted by the zip file's own names: exactly those of the manifest are read, each no further than it declares.
"""

import contextlib
import hashlib
import shutil
import sqlite3
import zipfile
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path

from storage import migrations
from storage.backup import manifest, snapshot
from storage.backup.create import CHUNK_BYTES, Progress
from storage.backup.manifest import MANIFEST_FILE, BackedUpFile, Manifest
from storage.backup.snapshot import StoredVersion
from storage.errors import (
    BackupDamaged,
    DatabaseCorrupt,
    DirectoryInUse,
    SchemaUnknown,
    StorageError,
    StorageNotWritable,
)
from storage.files import atomic
from storage.files.lock import LOCK_NAME, DataDirectoryLock
from storage.sql import sqlite
from storage.sql.sqlite import FILE_NAME
from storage.tables import ADAPTERS_FOLDER

# zipfile's errors on the way through a broken file; ValueError if an offset in it points before its beginning.
BROKEN = (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError, ValueError, sqlite3.Error)
METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)  # the others may want gigabytes to unpack a few bytes
Take = Callable[[StoredVersion, dict[str, bytes]], object]


def verify(backup: Path, progress: Progress) -> Manifest:
    """Check all of a backup; its manifest.

    Blocking: reads all of it, and writes its database beside it meanwhile. Raises BackupDamaged, UnsafePath,
    SchemaUnknown, and storage's errors about the disk.
    """
    with _opened(backup) as archive, atomic.temporary_directory(backup.absolute().parent) as folder:
        return _read(archive, folder, lambda version, files: None, progress)


def restore(backup: Path, data_dir: Path, progress: Progress) -> Manifest:
    """Make a data directory out of a backup; its manifest.

    Blocking. Raises as `verify`, DirectoryInUse where something is in the directory, and DataDirectoryLocked.
    """
    with _opened(backup) as archive, _empty(data_dir) as folder:
        found = _read(
            archive, folder, lambda version, files: atomic.write_directory(folder / version.path, files), progress
        )
        if (folder / ADAPTERS_FOLDER).is_dir():
            atomic.publish_file(folder / ADAPTERS_FOLDER, data_dir / ADAPTERS_FOLDER)
        atomic.publish_file(folder / FILE_NAME, data_dir / FILE_NAME)
    return found


def _read(archive: zipfile.ZipFile, folder: Path, take: Take, progress: Progress) -> Manifest:
    """Check everything, leaves the database in the folder and hands the versions to `take`."""
    found = _manifest(archive)
    progress(0, found.size_bytes)
    _database(archive, found, folder / FILE_NAME)
    done_bytes = found.files[FILE_NAME].size_bytes
    progress(done_bytes, found.size_bytes)
    num_read = 1
    for version in snapshot.read_versions(folder / FILE_NAME):
        files = _version(archive, found, version)
        if files:
            take(version, files)
        num_read += len(files)
        done_bytes += sum(map(len, files.values()))
        progress(done_bytes, found.size_bytes)
    if num_read != len(found.files):
        raise BackupDamaged(f"{archive.filename} holds adapter files that its database does not know")
    return found


def _manifest(archive: zipfile.ZipFile) -> Manifest:
    """Return what is in the backup, before any of it is read: the names and sizes in the zip are the manifest's."""
    entries = {entry.filename: entry for entry in archive.infolist()}
    if MANIFEST_FILE not in entries:
        raise BackupDamaged(f"{archive.filename} has no {MANIFEST_FILE}: no backup of heed's")
    if entries[MANIFEST_FILE].file_size > manifest.LIMIT_BYTES:
        raise BackupDamaged(f"the {MANIFEST_FILE} of {archive.filename} is too large")
    for name in entries.keys() - {MANIFEST_FILE}:
        manifest.check_name(name)
    if any(entry.compress_type not in METHODS for entry in entries.values()):
        raise BackupDamaged(f"{archive.filename} is packed in a way that heed does not pack")
    found = manifest.parse(archive.read(MANIFEST_FILE))
    if not migrations.is_known(found.schema_revision):
        raise SchemaUnknown(
            f"the backup has the schema {found.schema_revision}, newer than this heed ({migrations.head()})"
        )
    if len(entries) != len(archive.infolist()) or entries.keys() - {MANIFEST_FILE} != found.files.keys():
        raise BackupDamaged(f"{archive.filename} does not hold the files that its {MANIFEST_FILE} names")
    for name, file in found.files.items():
        if entries[name].file_size != file.size_bytes:
            raise BackupDamaged(f"{name} in {archive.filename} is not {file.size_bytes} bytes long")
    return found


def _database(archive: zipfile.ZipFile, found: Manifest, path: Path) -> None:
    digest = hashlib.sha256()
    with archive.open(FILE_NAME) as packed, atomic.new_file(path) as file:
        while chunk := packed.read(CHUNK_BYTES):
            digest.update(chunk)
            file.write(chunk)
    _compare(digest.hexdigest(), FILE_NAME, found.files[FILE_NAME])
    try:
        sqlite.check_copy(path)
        schema = snapshot.read_schema(path)
    except DatabaseCorrupt as error:
        raise BackupDamaged(f"the database in {archive.filename}: {error.args[0]}") from error
    if schema != found.schema_revision:
        raise BackupDamaged(f"the database in {archive.filename} has the schema {schema}, not {found.schema_revision}")


def _version(archive: zipfile.ZipFile, found: Manifest, version: StoredVersion) -> dict[str, bytes]:
    """Return the files of a version; none where the backup says that it had none."""
    named = found.of_version(version.path)
    if not named and version.path in found.missing:
        return {}
    if sum(file.size_bytes for file in named.values()) != version.size_bytes:
        raise BackupDamaged(f"{version.path} in {archive.filename} is not {version.size_bytes} bytes large")
    files = {name: archive.read(f"{version.path}/{name}") for name in named}
    for name, content in files.items():
        _compare(hashlib.sha256(content).hexdigest(), f"{version.path}/{name}", named[name])
    if atomic.files_sha256(files) != version.sha256:
        raise BackupDamaged(f"{version.path} in {archive.filename} is not what the database says")
    return files


def _compare(sha256: str, name: str, file: BackedUpFile) -> None:
    if sha256 != file.sha256:
        raise BackupDamaged(f"{name} in the backup is not what was written (its SHA-256 is another)")


@contextlib.contextmanager
def _opened(backup: Path) -> Iterator[zipfile.ZipFile]:
    """Provide the zip file; what cannot be read in it leaves the block as BackupDamaged."""
    try:
        with zipfile.ZipFile(backup) as archive:
            yield archive
    except StorageError:
        raise
    except BROKEN as error:
        raise BackupDamaged(f"{backup} cannot be read as a backup ({error})") from error
    except OSError as error:
        raise BackupDamaged(f"{backup} cannot be read ({error.strerror or error})") from error


@contextlib.contextmanager
def _empty(data_dir: Path) -> Iterator[Path]:
    """Provide a folder below an empty data directory to restore into; the directory stays empty on failure."""
    _require_empty(data_dir)
    made = [path for path in (data_dir, *data_dir.absolute().parents) if not path.exists()]
    had_lock = (data_dir / LOCK_NAME).exists()
    with DataDirectoryLock(data_dir):
        try:
            with atomic.temporary_directory(data_dir) as folder:
                yield folder
        except BaseException:
            for path in data_dir.iterdir():
                if path.name != LOCK_NAME or not had_lock:
                    _remove(path)
            for path in made:
                path.rmdir()
            raise


def _require_empty(data_dir: Path) -> None:
    try:
        if any(path.name != LOCK_NAME for path in data_dir.iterdir()):
            raise DirectoryInUse(f"{data_dir} is not empty")
    except FileNotFoundError:
        return
    except NotADirectoryError as error:
        raise DirectoryInUse(f"{data_dir} is not a directory") from error
    except PermissionError as error:
        raise StorageNotWritable(f"{data_dir} cannot be read ({error.strerror})") from error


def _remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink()
