"""The manifest of a backup: who wrote it, when, and the SHA-256 of every file in it.

Owns the format and which names a backup may have: the database, and the files of adapter versions. Anything else, and
anything that would lead out of a data directory, is refused.
"""

import re
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from storage.backup.snapshot import VERSION_PATH
from storage.errors import BackupDamaged, SchemaUnknown, UnsafePath
from storage.sql.sqlite import FILE_NAME

MANIFEST_FILE = "manifest.json"
FORMAT = "heed backup 1"
LIMIT_BYTES = 256 * 1024**2  # of the manifest itself: about a million versions

_VERSION_FILE = re.compile(rf"({VERSION_PATH.pattern})/[0-9A-Za-z_][0-9A-Za-z_.-]*")


class BackedUpFile(BaseModel):
    """One file of a backup."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    sha256: str = Field(pattern=r"^[0-9a-f]{64}$")
    size_bytes: int = Field(ge=0)


class Manifest(BaseModel):
    """The content of `manifest.json`. `missing`: versions whose files were not there, or damaged, when it was made."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    format: Literal["heed backup 1"] = "heed backup 1"
    heed_version: str
    schema_revision: str
    created_at: str  # UTC, ISO 8601
    files: dict[str, BackedUpFile]
    missing: tuple[str, ...] = Field(default=(), strict=False)

    @property
    def size_bytes(self) -> int:
        """Of all files together."""
        return sum(file.size_bytes for file in self.files.values())

    @property
    def num_versions(self) -> int:
        """Adapter versions that are in it."""
        return len({name.rpartition("/")[0] for name in self.files} - {""})

    def of_version(self, path: str) -> dict[str, BackedUpFile]:
        """Return the files of one adapter version, by their plain names."""
        prefix = f"{path}/"
        return {name.removeprefix(prefix): file for name, file in self.files.items() if name.startswith(prefix)}

    def to_json(self) -> bytes:
        """As it is written."""
        return self.model_dump_json(indent=1).encode()


def parse(content: bytes) -> Manifest:
    """Return a manifest that was read, with names that are safe to write.

    Raises BackupDamaged, UnsafePath, and SchemaUnknown for one that a newer heed wrote in another form.
    """
    try:
        manifest = Manifest.model_validate_json(content)
    except ValidationError as error:
        first = error.errors()[0]
        if first["loc"] == ("format",) and str(first["input"]).startswith("heed backup "):
            raise SchemaUnknown(f"the backup has the form {first['input']!r}, this heed reads {FORMAT!r}") from None
        where = ".".join(str(part) for part in first["loc"])
        raise BackupDamaged(f"its {MANIFEST_FILE} cannot be read ({where}: {first['msg']})") from None
    for name in manifest.files:
        check_name(name)
    if FILE_NAME not in manifest.files:
        raise BackupDamaged(f"it holds no {FILE_NAME}")
    return manifest


def check_name(name: str) -> None:
    """Raise UnsafePath for a name that is neither the database nor a file of an adapter version."""
    if name != FILE_NAME and not _VERSION_FILE.fullmatch(name):
        raise UnsafePath(f"the backup holds {name!r}, which is no file of a data directory")
