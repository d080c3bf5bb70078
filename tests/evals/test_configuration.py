"""The configuration that a result was made with."""

import json
from pathlib import Path

import pytest

from engine.pocket import WEIGHTS
from evals import configuration, provenance
from evals.config import EvalConfig


def test_it_is_what_heed_would_learn_with(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Defaults, the environment over them, what a measurement sets over both; the model's calibration where nothing is
    set.
    """
    monkeypatch.setenv("HEED_LEARN_STEPS", "9")
    plain = configuration.of_heed("pocket", WEIGHTS, tmp_path)
    assert plain is not None
    assert (plain["learn"]["steps"], plain["is_calibrated"]) == (9, True)
    assert "learn.steps" in plain["chosen"]
    rule = configuration.of_heed("pocket", WEIGHTS, tmp_path, learn={"top_k": 100}, gate={"max_drift": 7.0})
    assert rule is not None
    assert (rule["learn"]["top_k"], rule["gate"]["max_drift"]) == (100, 7.0)
    assert rule["sleep"] == plain["sleep"]


def test_neither_a_secret_nor_a_folder_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The teacher's key and address, the data directory and the model's folder stay out."""
    monkeypatch.setenv("HEED_CURRICULUM_API_KEY", "a-secret")
    text = json.dumps(configuration.of_heed("pocket", WEIGHTS, tmp_path))
    assert "learning_rate" in text
    assert not any(word in text for word in ("a-secret", str(tmp_path), str(WEIGHTS)))


def test_what_cannot_be_read_is_not_guessed(tmp_path: Path) -> None:
    """A model that is not there, a setting that does not exist, a heed that someone else started."""
    assert configuration.of_heed("pocket", tmp_path, tmp_path) is None
    assert configuration.of_heed("pocket", WEIGHTS, tmp_path, learn={"nothing": 1}) is None
    assert provenance.heed_of(EvalConfig(url="http://127.0.0.1:1"), "pocket", tmp_path) is None


def test_every_result_tells_it() -> None:
    """Beside the arguments and the environment."""
    made = provenance.made("heed eval", EvalConfig(), "pocket", provenance.machine())
    assert made["heed"]["learn"]["steps"] > 0
    assert provenance.made("heed eval", EvalConfig(), "pocket", {}, runs_heed=False)["heed"] is None
