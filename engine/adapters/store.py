"""Adapter versions on disk: PEFT directories under `<data>/adapters/<person>/<number>`.

Candidates that a gate refused lie apart, under `<data>/rejected`, with the verdict beside them; nothing serves them.
Owns writing, verifying and erasing them; the rows belong to `storage.learning.versions`. Invariants: a directory is
written once and never changed; nothing is served that was not verified against the SHA-256 in its row; only this
person's directories are touched by this person's calls.
"""

import asyncio
import json
import logging
import math
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from safetensors import SafetensorError

from engine.adapter_ref import CONFIG_FILE, TENSORS_FILE, AdapterRef
from engine.adapters.tensor_values import read_values
from engine.adapters.training_batch import BATCH_FILE
from engine.errors import AdapterDamaged
from storage.database import Database, Session
from storage.errors import StorageError
from storage.files import atomic
from storage.learning import versions
from storage.tables import ADAPTERS_FOLDER, AdapterVersion, User

logger = logging.getLogger(__name__)

REJECTED_FOLDER = "rejected"  # below the data directory: rejected/<person>/<number>
VERDICT_FILE = "verdict.json"
KEPT_REJECTED = 3  # of each person, the newest
FilesOf = Callable[[AdapterVersion], Awaitable[dict[str, bytes]]]  # reads a version on this machine
MAX_ADAPTER_NORM = 1e4  # Frobenius norm of all values together; trained ones of rank 16 stay below 100


class Copies(Protocol):
    """The versions' second place, besides this machine's disk. Calls raise storage's errors."""

    async def keep(self, version: AdapterVersion, sha256: str, files: dict[str, bytes]) -> None:
        """Store a copy of a version's files."""

    async def fetch(self, version: AdapterVersion) -> dict[str, bytes]:
        """Return a version's files, verified. Raises AdapterDamaged."""

    async def remove(self, version: AdapterVersion) -> None:
        """Remove a version's copy. An absent one is no error."""

    async def erase(self, user_id: str) -> None:
        """Remove all copies of a person. Absent ones are no error."""

    async def claim(self) -> None:
        """Make sure that the place is this database's. Raises ObjectStoreTaken."""

    async def settle(self, files_of: FilesOf) -> None:
        """Remove copies of versions that are gone, and make those that are missing. Logs what does not work."""


class NoCopies:
    """Versions are on this machine's disk alone."""

    async def keep(self, version: AdapterVersion, sha256: str, files: dict[str, bytes]) -> None:
        """In place: they are kept already."""

    async def fetch(self, version: AdapterVersion) -> dict[str, bytes]:
        """Raise AdapterDamaged."""
        raise AdapterDamaged(f"version {version.number} is nowhere else")

    async def remove(self, version: AdapterVersion) -> None:
        """In place: there is none."""

    async def erase(self, user_id: str) -> None:
        """In place: there are none."""

    async def claim(self) -> None:
        """In place: there is no place to claim."""

    async def settle(self, files_of: FilesOf) -> None:
        """In place: there are none."""


class AdapterStore:
    """The adapter directories of one data directory."""

    def __init__(self, data_dir: Path, database: Database, copies: Copies | None = None) -> None:
        """`database` tells which directories are known, when orphans are swept; `copies` are kept elsewhere."""
        self.copies = copies or NoCopies()
        self.num_fetched = 0  # versions that were not here any more
        self._data_dir = data_dir.resolve()
        self._database = database

    def ref(self, version: AdapterVersion) -> AdapterRef:
        """Return the name of this version for the host and the trainer."""
        if version.lora_int_id is None:
            raise AdapterDamaged(f"version {version.number} was never stored")
        return AdapterRef(version.user_id, version.number, version.lora_int_id, str(self._path(version)))

    async def write(self, version: AdapterVersion, tensors: bytes, config: str, batch: bytes = b"") -> tuple[str, int]:
        """Write the version's directory and return its SHA-256 and size in bytes. `batch`: its training data.

        Raises AdapterDamaged for values that are not finite or far too large, and storage's errors.
        """
        files = {CONFIG_FILE: config.encode(), TENSORS_FILE: tensors}
        check_values(files)
        if batch:
            files[BATCH_FILE] = batch
        sha256 = await asyncio.to_thread(atomic.write_directory, self._path(version), files)
        await self.copies.keep(version, sha256, files)
        return sha256, sum(map(len, files.values()))

    async def keep_rejected(
        self, version: AdapterVersion, tensors: bytes, config: str, verdict: dict[str, object]
    ) -> Path:
        """Write a refused candidate, for later inspection, and return its directory. The newest few are kept.

        A candidate that is not finite leaves only its verdict. Raises storage's errors.
        """
        files = {VERDICT_FILE: (json.dumps(verdict, indent=1) + "\n").encode()}
        if tensors:
            files |= {CONFIG_FILE: config.encode(), TENSORS_FILE: tensors}
        folder = self._rejected(version.user_id)
        await asyncio.to_thread(_write_newest, folder, str(version.number), files)
        return folder / str(version.number)

    async def verify(self, version: AdapterVersion) -> None:
        """Read the directory again and compare. Raise AdapterDamaged if it is missing, changed or unusable."""
        await self.read(version)

    async def read(self, version: AdapterVersion) -> dict[str, bytes]:
        """Return a version's files, verified; those that are not here any more from their copy. Raises as `verify`."""
        try:
            return await asyncio.to_thread(self._read, version)
        except AdapterDamaged as damage:
            return await self._fetched(version, damage)

    async def settle_copies(self) -> None:
        """Remove copies of versions that are gone, and make those that are missing."""
        await self.copies.settle(lambda version: asyncio.to_thread(self._read, version))

    async def _fetched(self, version: AdapterVersion, damage: AdapterDamaged) -> dict[str, bytes]:
        """Put a version's copy in place of what is damaged here. Raises the damage if the copy is no better."""
        try:
            files = await self.copies.fetch(version)
            check_values(files)
        except AdapterDamaged:
            raise damage from None
        await asyncio.to_thread(_put_in_place, self._path(version), files)
        self.num_fetched += 1
        logger.info("version %d of a person was fetched from its copy", version.number)
        return files

    def _read(self, version: AdapterVersion) -> dict[str, bytes]:
        try:
            files = atomic.read_directory(self._path(version))
        except (OSError, StorageError) as error:
            raise AdapterDamaged(f"version {version.number} cannot be read: {error}") from error
        if atomic.files_sha256(files) != version.sha256:
            raise AdapterDamaged(f"version {version.number} on disk is not what was written")
        check_values(files)
        return files

    async def remove(self, version: AdapterVersion) -> None:
        """Erase one version's directory and copy. Absent ones are no error."""
        await asyncio.to_thread(atomic.remove_directory, self._path(version))
        await self.copies.remove(version)

    async def erase(self, user_id: str) -> None:
        """Erase all directories of a person. Absent ones are no error."""
        for folder in (self._person(user_id), self._rejected(user_id)):
            await asyncio.to_thread(atomic.remove_directory, folder)

    async def sweep(self) -> list[str]:
        """Remove unfinished writes and directories without a row, at start; return the removed paths."""
        await self._sweep_rejected()
        known = await self._database.read(versions.known_paths)
        return await asyncio.to_thread(self._sweep, known)

    async def _sweep_rejected(self) -> None:
        """Remove refused candidates of people who are gone."""
        root = self._data_dir / REJECTED_FOLDER
        names = [p.name for p in root.iterdir()] if root.is_dir() else []
        for name in await self._database.read(lambda s: _unknown(s, names)):
            await asyncio.to_thread(atomic.remove_directory, root / name)

    def _sweep(self, known: set[str]) -> list[str]:
        root = self._data_dir / ADAPTERS_FOLDER
        if not root.is_dir():
            return []
        atomic.sweep_temporary(root)
        orphans = [path for path in root.glob("*/*") if str(path.relative_to(self._data_dir)) not in known]
        for path in orphans:
            atomic.remove_directory(path)
        for person in root.iterdir():
            if not any(person.iterdir()):
                atomic.remove_directory(person)
        return [str(path.relative_to(self._data_dir)) for path in orphans]

    def _path(self, version: AdapterVersion) -> Path:
        path = self._data_dir / version.path
        if path.parent != self._person(version.user_id):
            raise AdapterDamaged(f"version {version.number} has a path outside its person's folder")
        return path

    def _person(self, user_id: str) -> Path:
        return self._data_dir / ADAPTERS_FOLDER / _checked(user_id)

    def _rejected(self, user_id: str) -> Path:
        return self._data_dir / REJECTED_FOLDER / _checked(user_id)


def _checked(user_id: str) -> str:
    """Return the id. Raise AdapterDamaged for one that could lead out of the folder."""
    if not user_id.isalnum():
        raise AdapterDamaged(f"{user_id!r} is not a person's id")
    return user_id


def _put_in_place(path: Path, files: dict[str, bytes]) -> None:
    atomic.remove_directory(path)
    atomic.write_directory(path, files)


def _unknown(s: Session, user_ids: Sequence[str]) -> list[str]:
    """Return the ids that belong to no person."""
    return [user_id for user_id in user_ids if s.get(User, user_id) is None]


def _write_newest(folder: Path, name: str, files: dict[str, bytes]) -> None:
    atomic.write_directory(folder / name, files)
    older = sorted((p for p in folder.iterdir() if p.name.isdecimal()), key=lambda p: int(p.name))
    for path in older[:-KEPT_REJECTED]:
        atomic.remove_directory(path)


def check_values(files: dict[str, bytes]) -> None:
    """Raise AdapterDamaged unless the files parse and every value is finite and of a possible size."""
    try:
        config: Any = json.loads(files[CONFIG_FILE])
        tensors = read_values(files[TENSORS_FILE])
    except (KeyError, ValueError, SafetensorError) as error:
        raise AdapterDamaged(f"the adapter's files cannot be read: {error}") from error
    if not isinstance(config, dict) or config.get("peft_type") != "LORA" or not tensors:
        raise AdapterDamaged("the adapter's files hold no LoRA")
    norm = math.sqrt(sum(float(np.square(t, dtype=np.float64).sum()) for t in tensors.values()))
    if not norm <= MAX_ADAPTER_NORM:  # also refuses NaN
        raise AdapterDamaged(f"the adapter's values have norm {norm}, which no training produces")
