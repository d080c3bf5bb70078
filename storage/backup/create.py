"""Writes a backup: everything a heed needs to go on elsewhere, as one zip file, while the old one runs.

In it are the database, the adapter versions that this database names as accepted, and a manifest. Candidates and
refused ones are not, nor logs and settings: a heed that begins without them loses no lesson. Invariants: the file is
whole or not there, and its owner's alone; a version is in it only with the bytes that its SHA-256 in the database
stands for.
"""

import hashlib
import zipfile
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import BinaryIO

from storage.backup import snapshot
from storage.backup.manifest import MANIFEST_FILE, BackedUpFile, Manifest
from storage.backup.snapshot import BackupSnapshot, StoredVersion
from storage.errors import SnapshotErased
from storage.files import atomic
from storage.sql.sqlite import FILE_NAME

ATTEMPTS = 10  # one more is needed only if a person was erased while the one before was written
CHUNK_BYTES = 1024**2
MODE = 0o600

Progress = Callable[[int, int], None]  # bytes done, bytes in all


def write(database: Path, data_dir: Path, target: Path, heed_version: str, progress: Progress) -> Manifest:
    """Write a backup of a data directory to `target`; its manifest.

    Blocking: for as long as reading everything takes; the heed that runs there goes on. Raises AlreadyWritten,
    DatabaseMissing, SnapshotErased, and storage's errors about the disk; then nothing is at `target`.
    """
    with atomic.new_file(target) as file:
        for _ in range(ATTEMPTS):
            try:
                with snapshot.taken(database, data_dir) as taken:
                    return _pack(file, taken, heed_version, progress)
            except SnapshotErased:
                file.seek(0)
                file.truncate()
        raise SnapshotErased("people were erased again and again while the backup was written")


def _pack(file: BinaryIO, taken: BackupSnapshot, heed_version: str, progress: Progress) -> Manifest:
    now = datetime.now(UTC)
    with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
        packing = _Packing(archive, now, taken.size_bytes, progress)
        packing.add_file(FILE_NAME, taken.database)
        missing = [version.path for version in taken.missing]
        for folder, version in taken.versions.items():
            if not packing.add_version(folder, version):
                missing.append(version.path)
        manifest = Manifest(
            heed_version=heed_version,
            schema_revision=taken.schema,
            created_at=now.isoformat(timespec="seconds"),
            files=packing.files,
            missing=tuple(missing),
        )
        archive.writestr(packing.entry(MANIFEST_FILE), manifest.to_json())
    return manifest


class _Packing:
    """A backup that is being written, and what is in it so far."""

    def __init__(self, archive: zipfile.ZipFile, now: datetime, size_bytes: int, progress: Progress) -> None:
        self.files: dict[str, BackedUpFile] = {}
        self._archive = archive
        self._now = now
        self._size_bytes = size_bytes
        self._done_bytes = 0
        self._progress = progress

    def entry(self, name: str) -> zipfile.ZipInfo:
        """Return a file in the zip that is its owner's alone once it is unpacked."""
        entry = zipfile.ZipInfo(name, self._now.timetuple()[:6])
        entry.external_attr = MODE << 16
        entry.compress_type = zipfile.ZIP_STORED if name.endswith(".safetensors") else zipfile.ZIP_DEFLATED
        return entry

    def add_file(self, name: str, path: Path) -> None:
        """Add a file of any size."""
        digest, size_bytes = hashlib.sha256(), 0
        with path.open("rb") as source, self._archive.open(self.entry(name), "w", force_zip64=True) as packed:
            while chunk := source.read(CHUNK_BYTES):
                digest.update(chunk)
                packed.write(chunk)
                size_bytes += len(chunk)
                self._advance(len(chunk))
        self.files[name] = BackedUpFile(sha256=digest.hexdigest(), size_bytes=size_bytes)

    def add_version(self, folder: Path, version: StoredVersion) -> bool:
        """Return an adapter version; False, and nothing of it, where its files are not those that were written."""
        files = atomic.read_directory(folder)
        if atomic.files_sha256(files) != version.sha256:
            return False
        for name, content in files.items():
            path = f"{version.path}/{name}"
            self._archive.writestr(self.entry(path), content)
            self.files[path] = BackedUpFile(sha256=hashlib.sha256(content).hexdigest(), size_bytes=len(content))
        self._advance(version.size_bytes)
        return True

    def _advance(self, num_bytes: int) -> None:
        self._done_bytes += num_bytes
        self._progress(self._done_bytes, self._size_bytes)
