"""engine.calibration.overview: what is in use, for people to read."""

from dataclasses import replace
from pathlib import Path

from engine.calibration.overview import overview
from engine.config import EngineConfig, LearnConfig
from engine.host.architectures import Trainability
from tests.engine.calibration.test_record import measured

LLAMA = Trainability("Llama")


def test_what_is_in_use_is_shown(tmp_path: Path) -> None:
    """The calibration's values, but an operator's own where there are some."""
    config = measured().applied(EngineConfig("m", tmp_path))
    found = overview(measured(), config, LLAMA)
    assert (found.learning_rate, found.is_measured, found.refusal) == (0.002, True, "")
    assert found.bounds == {"max_divergence_left": 0.4}
    own = EngineConfig("m", tmp_path, learn=replace(LearnConfig(), learning_rate=0.5))
    assert overview(measured(), measured().applied(own), LLAMA).learning_rate == 0.5


def test_a_quantised_model_has_a_reason(tmp_path: Path) -> None:
    """And the operator a remedy."""
    found = overview(measured(), EngineConfig("m", tmp_path), Trainability("Llama", "AWQ"))
    assert "AWQ" in found.refusal
    assert "HEED_MODEL" in found.remedy
