"""How a result was made."""

import hashlib
import re
from pathlib import Path

from evals import provenance


def test_the_weights_are_named_by_their_contents(tmp_path: Path) -> None:
    """All files in the order of their names; a folder without weights has no hash."""
    assert provenance.weights_sha256(tmp_path / "none") is None
    folder = tmp_path / "model"
    folder.mkdir()
    (folder / "b.safetensors").write_bytes(b"two")
    (folder / "a.safetensors").write_bytes(b"one")
    assert provenance.weights_sha256(folder) == hashlib.sha256(b"onetwo").hexdigest()


def test_the_commit_and_the_machine_are_named() -> None:
    """In a checkout a commit of forty digits; outside of one nothing is guessed."""
    found = provenance.commit()
    assert found["commit"] is None or re.fullmatch("[0-9a-f]{40}", found["commit"])
    assert provenance.machine()["cores"] >= 1
    assert len(provenance.machine()["load"]) == 3
