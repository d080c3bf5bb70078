"""Copies of adapter versions in an object store, from which any machine can fetch them.

Each version is one object, `<its path>/<its SHA-256>.zip`: a zip of its files that is the same for the same files.
Invariants: a copy is stored before its version may become active; what is fetched has the SHA-256 of its row, or is
damaged; copies of versions that are gone are removed, those of an erased person before their rows are; one place holds
the copies of one database.
"""

import asyncio
import io
import logging
import time
import zipfile

from engine.adapters.store import Copies, FilesOf, NoCopies
from engine.adapters.zip_format import BROKEN
from engine.errors import AdapterDamaged
from storage import settings
from storage.database import Database, Session
from storage.errors import ObjectMissing, ObjectStoreAway, ObjectStoreTaken, StorageError
from storage.files import atomic
from storage.learning import versions
from storage.object_store import ObjectStore, opened
from storage.tables import ADAPTERS_FOLDER, AdapterVersion, new_id

logger = logging.getLogger(__name__)

OWNER = "owner"  # the object that names the database to which all others belong
MARK_KEY = "object_store.mark"  # the setting with the database's name for itself
PATIENCE_S = 60.0  # for which a version that was trained waits for a store that is away
PAUSE_S = 1.0


class StoredCopies:
    """Copies in one object store, of one database's versions."""

    def __init__(self, store: ObjectStore, database: Database) -> None:
        self._store = store
        self._database = database

    async def keep(self, version: AdapterVersion, sha256: str, files: dict[str, bytes]) -> None:
        """See Copies. Waits for a while for a store that is away."""
        end_s, content = time.monotonic() + PATIENCE_S, packed(files)
        while True:
            try:
                return await asyncio.to_thread(self._store.put, _name(version, sha256), content)
            except ObjectStoreAway as error:
                if time.monotonic() > end_s:
                    raise
                logger.warning("a new version waits: %s", error)
            await asyncio.sleep(PAUSE_S)

    async def fetch(self, version: AdapterVersion) -> dict[str, bytes]:
        """See Copies."""
        try:
            content = await asyncio.to_thread(self._store.get, _name(version))
        except ObjectMissing as error:
            raise AdapterDamaged(f"version {version.number} has no copy") from error
        files = unpacked(content, version.size_bytes or 0)
        if atomic.files_sha256(files) != version.sha256:
            raise AdapterDamaged(f"the copy of version {version.number} is not what was written")
        return files

    async def remove(self, version: AdapterVersion) -> None:
        """See Copies."""
        await asyncio.to_thread(self._store.remove, version.path)

    async def erase(self, user_id: str) -> None:
        """See Copies."""
        await asyncio.to_thread(self._store.remove, f"{ADAPTERS_FOLDER}/{user_id}")

    async def claim(self) -> None:
        """See Copies. A sweep for one database removes what another one has there."""
        mine = await self._database.write(_own_mark)
        try:
            owner = await asyncio.to_thread(self._store.get, OWNER)
        except ObjectMissing:
            owner = mine.encode()
            await asyncio.to_thread(self._store.put, OWNER, owner)
        if owner != mine.encode():
            raise ObjectStoreTaken(f"{self._store.place} has the adapters of another database")

    async def settle(self, files_of: FilesOf) -> None:
        """See Copies."""
        try:
            names = await self._sweep()
            for version in await self._database.read(versions.all_accepted):
                if _name(version) not in names:
                    await self._keep_old(version, files_of)
        except StorageError as error:
            logger.warning("copies of adapters are not settled until the next start: %s", error)

    async def _sweep(self) -> list[str]:
        """Remove copies of versions that are gone. Return the names of all there were.

        A version's row is there before its copy: what is listed first, and then has no row, is gone.
        """
        names = await asyncio.to_thread(self._store.names, ADAPTERS_FOLDER)
        known = await self._database.read(versions.known_paths)
        for folder in sorted({name.rpartition("/")[0] for name in names} - known):
            await asyncio.to_thread(self._store.remove, folder)
        return names

    async def _keep_old(self, version: AdapterVersion, files_of: FilesOf) -> None:
        """Make the copy of a version that is from before there was a store."""
        try:
            await self.keep(version, version.sha256 or "", await files_of(version))
        except AdapterDamaged as error:
            logger.warning("version %d of a person has no copy: %s", version.number, error)


def copies_in(url: str, database: Database) -> Copies:
    """Return the copies in the object store at a URL; an empty one: none. Raises DriverMissing."""
    return StoredCopies(opened(url), database) if url else NoCopies()


def _name(version: AdapterVersion, sha256: str = "") -> str:
    return f"{version.path}/{sha256 or version.sha256}.zip"


def _own_mark(s: Session) -> str:
    """Return what tells this database from every other, made at the first call."""
    mark = settings.get(s, MARK_KEY) or new_id()
    settings.put(s, MARK_KEY, mark)
    return str(mark)


def packed(files: dict[str, bytes]) -> bytes:
    """Return files as one zip, byte for byte the same for the same files."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, content in sorted(files.items()):
            archive.writestr(zipfile.ZipInfo(name), content)
    return buffer.getvalue()


def unpacked(content: bytes, size_bytes: int) -> dict[str, bytes]:
    """Return the files of a zip that `packed` made. Raises AdapterDamaged, also if they are not of that size."""
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            if sum(entry.file_size for entry in archive.infolist()) != size_bytes:
                raise AdapterDamaged("the copy has another size than its version")
            return {entry.filename: archive.read(entry) for entry in archive.infolist()}
    except BROKEN as error:
        raise AdapterDamaged(f"the copy cannot be read ({error})") from error
