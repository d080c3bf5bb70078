"""How a result was made."""

import hashlib
import re
from pathlib import Path

import pytest

from bench.config import BenchConfig
from engine.pocket import WEIGHTS
from evals import provenance
from evals.config import EvalConfig
from evals.real.run import RealConfig


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


def test_a_result_names_how_it_was_made(monkeypatch: pytest.MonkeyPatch) -> None:
    """Commit, weights, the whole configuration, heed's settings without a secret, the machine before and after."""
    monkeypatch.setenv("HEED_LEARN_STEPS", "9")
    monkeypatch.setenv("HEED_TELEGRAM_TOKEN", "secret")
    made = provenance.made("heed eval", EvalConfig(seeds=3), "pocket", provenance.machine())
    assert len(made["weights_sha256"]) == 64
    assert made["config"]["seeds"] == 3
    assert made["settings"]["HEED_LEARN_STEPS"] == "9"
    assert set(made["machine"]) == {"at_start", "at_end"}
    assert "commit" in made
    assert "secret" not in str(made)
    assert not provenance.is_told("HEED_HTTP_API_KEYS")


def test_a_databases_address_is_not_told() -> None:
    """A password may be in it."""
    measured = BenchConfig(only=("cluster",), database="postgresql://heed:secret@x/y")
    made = provenance.made("heed bench", measured, "pocket", provenance.machine(), runs_heed=False)
    assert "secret" not in str(made)
    assert made["config"]["only"] == ("cluster",)


def test_a_named_model_is_found_where_heed_keeps_it(tmp_path: Path) -> None:
    """The pocket model comes along, smollm2 lies in the data directory, anything else is a folder."""
    assert provenance.folder_of("pocket") == WEIGHTS
    assert provenance.folder_of("smollm2", tmp_path).parent == tmp_path / "models"
    assert provenance.folder_of(str(tmp_path)) == tmp_path


def test_heed_tells_of_a_folder_only_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is found by what heed was started with: an argument, or its variable; smollm2 is told by its folder, too."""
    folder = tmp_path / "my-model"
    folder.mkdir()
    (folder / "model.safetensors").write_bytes(b"one")
    own, before = hashlib.sha256(b"one").hexdigest(), provenance.machine()
    given = provenance.made("heed eval real", RealConfig(model=str(folder)), "my-model", before)
    assert given["weights_sha256"] == own
    monkeypatch.setenv("HEED_MODEL", str(folder))
    assert provenance.made("heed eval", EvalConfig(), "my-model", before)["weights_sha256"] == own
    kept = provenance.folder_of("smollm2", tmp_path)
    assert provenance.folder_of(kept.name, tmp_path, "smollm2") == kept


def test_of_a_heed_that_runs_elsewhere_nothing_is_guessed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nor of a model with another name than the one that heed was started with."""
    folder = tmp_path / "my-model"
    folder.mkdir()
    (folder / "model.safetensors").write_bytes(b"one")
    monkeypatch.setenv("HEED_MODEL", str(folder))
    elsewhere = EvalConfig(url="http://127.0.0.1:8080")
    assert provenance.made("heed eval", elsewhere, "my-model", provenance.machine())["weights_sha256"] is None
    assert provenance.made("heed eval", EvalConfig(), "other", provenance.machine())["weights_sha256"] is None
