"""Adapter versions with files on disk, as the engine writes them; what is in the files is for the engine to know."""

from pathlib import Path

from storage.database import Database
from storage.files import atomic
from storage.learning import versions
from storage.tables import AdapterVersion

FILES = ("adapter_config.json", "adapter_model.safetensors")


async def teach(database: Database, data_dir: Path, user_id: str, content: bytes) -> AdapterVersion:
    """A version of its own that is on disk, accepted and active."""
    version = await database.write(lambda s: versions.allocate(s, user_id, 0, "pocket", None, None))
    files = dict.fromkeys(FILES, content)
    sha256 = atomic.write_directory(data_dir / version.path, files)
    size_bytes = sum(map(len, files.values()))
    return await database.write(lambda s: versions.accept(s, user_id, version.number, sha256, size_bytes))


async def prune(database: Database, data_dir: Path, user_id: str, keep: int) -> None:
    """Give up all but the newest, first in the database and then on disk."""
    for version in await database.write(lambda s: versions.prune(s, user_id, keep)):
        atomic.remove_directory(data_dir / version.path)
