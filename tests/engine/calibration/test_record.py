"""engine.calibration.record: found by model and settings, and never in the way of what an operator chose."""

from dataclasses import replace
from pathlib import Path

import pytest

from engine.calibration import record
from engine.calibration.record import Calibration
from engine.config import EngineConfig, GateConfig, LearnConfig
from engine.host.model_files import fingerprint
from engine.pocket import WEIGHTS

MODEL = "0123456789abcdef"


def measured(**changes: object) -> Calibration:
    """Return a calibration of some model with the default settings."""
    made = Calibration(
        "some", MODEL, record.settings_hash(LearnConfig()), True, {"learning_rate": 0.002}, {"max_divergence_left": 0.4}
    )
    return replace(made, **changes)  # type: ignore[arg-type]


def test_it_replaces_what_nobody_chose(tmp_path: Path) -> None:
    """The other settings stay as they are."""
    config = measured().applied(EngineConfig("m", tmp_path))
    assert (config.learn.learning_rate, config.gate.max_divergence_left) == (0.002, 0.4)
    assert config.learn.steps == LearnConfig().steps
    assert config.is_calibrated
    assert not measured(is_measured=False).applied(config).is_calibrated
    assert config.gate.max_drift == GateConfig().max_drift


@pytest.mark.parametrize("chosen", [None, frozenset({"learn.learning_rate"})])
def test_it_leaves_alone_what_the_operator_chose(tmp_path: Path, chosen: frozenset[str] | None) -> None:
    """Whether the names are known or only that the value is not the default."""
    own = EngineConfig("m", tmp_path, learn=replace(LearnConfig(), learning_rate=0.5), chosen=chosen)
    config = measured().applied(own)
    assert (config.learn.learning_rate, config.gate.max_divergence_left) == (0.5, 0.4)


def test_a_default_that_was_chosen_stays(tmp_path: Path) -> None:
    """Setting a value that happens to be the default is a choice, too."""
    chosen = EngineConfig("m", tmp_path, chosen=frozenset({"learn.learning_rate"}))
    assert measured().applied(chosen).learn.learning_rate == LearnConfig().learning_rate


def test_what_is_kept_is_found_again(tmp_path: Path) -> None:
    """By the model's fingerprint and the settings that it depends on, and for no others."""
    config = EngineConfig("m", tmp_path)
    assert record.find(config, MODEL) is None
    record.keep(measured(figures={"closed": [0.5, 0.7]}), tmp_path)
    assert record.find(config, MODEL) == measured(figures={"closed": [0.5, 0.7]})
    assert record.find(config, "another") is None
    assert record.find(replace(config, learn=replace(LearnConfig(), lora_rank=8)), MODEL) is None


def test_a_damaged_file_counts_as_none(tmp_path: Path) -> None:
    """Heed starts with the estimate then."""
    path = record.keep(measured(), tmp_path)
    path.write_text(path.read_text()[:40])
    assert record.find(EngineConfig("m", tmp_path), MODEL) is None


def test_the_one_made_here_comes_before_the_shipped_one(tmp_path: Path) -> None:
    """An operator who calibrates anew gets what he measured."""
    config = EngineConfig("pocket", tmp_path)
    shipped = record.find(config, fingerprint(WEIGHTS))
    assert shipped is not None
    assert shipped.is_measured
    record.keep(replace(shipped, learn={"learning_rate": 0.003}), tmp_path)
    found = record.find(config, fingerprint(WEIGHTS))
    assert found is not None
    assert found.learn == {"learning_rate": 0.003}


@pytest.mark.parametrize("path", sorted(record.SHIPPED.glob("*.json")), ids=lambda path: path.name)
def test_every_shipped_one_can_be_applied(path: Path, tmp_path: Path) -> None:
    """Its file has the name it is looked up by, and its settings pass their checks."""
    found = record._read(path)
    assert found is not None
    assert found.file_name == path.name
    given = EngineConfig("m", tmp_path)
    assert found.applied(given).learn.learning_rate == found.learn["learning_rate"]
    assert record.settings_hash(given.learn) == found.measured_with
