"""storage.backup.manifest: what a backup may say of itself."""

import json
from typing import Any

import pytest

from storage.backup import manifest
from storage.backup.manifest import BackedUpFile, Manifest
from storage.errors import BackupDamaged, SchemaUnknown, UnsafePath

SHA256 = "ab" * 32
FILE = {"sha256": SHA256, "size_bytes": 7}
GOOD: dict[str, Any] = {
    "format": "heed backup 1",
    "heed_version": "0.1.0",
    "schema_revision": "0008",
    "created_at": "2026-01-02T03:04:05+00:00",
    "files": {"heed.db": FILE, "adapters/a1/2/adapter_config.json": FILE, "adapters/a1/2/batch.jsonl": FILE},
    "missing": ["adapters/a1/1"],
}


def written(**changes: Any) -> bytes:
    """A manifest with changes."""
    return json.dumps(GOOD | changes).encode()


def test_it_says_what_was_written() -> None:
    """There and back."""
    read = manifest.parse(written())
    assert manifest.parse(read.to_json()) == read
    assert (read.size_bytes, read.num_versions, read.missing) == (21, 1, ("adapters/a1/1",))
    assert read.of_version("adapters/a1/2") == dict.fromkeys(
        ("adapter_config.json", "batch.jsonl"), BackedUpFile(sha256=SHA256, size_bytes=7)
    )
    assert isinstance(read, Manifest)


@pytest.mark.parametrize(
    "content",
    [b"", b"[]", b"\xff", written(format="a letter"), written(files={}), written(extra=1), written(created_at=7),
     written(files={"heed.db": FILE | {"size_bytes": -1}}), written(files={"heed.db": FILE | {"sha256": "AB" * 32}})],
)  # fmt: skip
def test_what_is_none_is_refused(content: bytes) -> None:
    """Each with the place that is wrong."""
    with pytest.raises(BackupDamaged):
        manifest.parse(content)


def test_a_newer_form_is_refused_by_name() -> None:
    """It is not damaged: a newer heed reads it."""
    with pytest.raises(SchemaUnknown, match="heed backup 2"):
        manifest.parse(written(format="heed backup 2"))


@pytest.mark.parametrize(
    "name",
    ["../heed.db", "/etc/passwd", "adapters/a1/2/../../../x", "adapters/../2/x", "adapters/a1/2", "adapters/a1/2/.x",
     "adapters/a1/2/x/y", "heed.lock", "adapters\\a1\\2\\x", "adapters/a1/2/x\n", "PAUSE", ""],
)  # fmt: skip
def test_names_that_lead_elsewhere_are_refused(name: str) -> None:
    """Only the database and files of versions."""
    with pytest.raises(UnsafePath):
        manifest.parse(written(files={"heed.db": FILE, name: FILE}))
