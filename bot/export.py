"""Everything heed holds about a person, as one zip file."""

from dataclasses import dataclass
from pathlib import Path

from storage.database import Database
from storage.tables import User

FILE_NAME = "heed-export.zip"


@dataclass(frozen=True)
class Archive:
    """A zip file and one line about what is in it."""

    content: bytes
    summary: str


async def archive(database: Database, data_dir: Path, user: User) -> Archive:
    """Everything about a person, in memory."""
    raise NotImplementedError
