"""engine.config.engine: combinations that no single group of settings can see."""

from pathlib import Path

import pytest

from engine.config import ConfigError, EngineConfig, GateConfig, HostConfig, LearnConfig


def test_a_rank_above_the_slots_is_refused() -> None:
    """vLLM pads slots to max_lora_rank, so a larger adapter could be trained but never served."""
    with pytest.raises(ConfigError, match="lora_rank"):
        EngineConfig(model="m", data_dir=Path(), learn=LearnConfig(lora_rank=64))


def test_an_engine_without_a_model_is_refused() -> None:
    """An empty name is refused; it would otherwise become the current folder."""
    with pytest.raises(ConfigError, match="model"):
        EngineConfig(model="", data_dir=Path())


def test_an_external_teacher_needs_its_folder() -> None:
    """It is refused without one, both in the settings and in a request."""
    with pytest.raises(ConfigError, match=r"host\.teacher_model"):
        EngineConfig(model="m", data_dir=Path(), learn=LearnConfig(teacher="external"))
    without = EngineConfig(model="m", data_dir=Path())
    with pytest.raises(ConfigError, match=r"host\.teacher_model"):
        without.check_teacher(LearnConfig().merged({"teacher": "external"}))
    EngineConfig(model="m", data_dir=Path(), host=HostConfig(teacher_model="t"), learn=LearnConfig(teacher="external"))


def test_the_defaults_are_valid() -> None:
    """Every group accepts its own defaults."""
    assert EngineConfig(model="m", data_dir=Path()).gate == GateConfig()


@pytest.mark.parametrize(
    ("model", "name"),
    [
        ("Qwen/Qwen3-8B", "Qwen/Qwen3-8B"),
        ("smollm2", "smollm2"),
        ("/srv/models/qwen", "qwen"),
        ("./models/qwen/", "qwen"),
        ("/opt/heed/engine/pocket/weights", "pocket"),
    ],
)
def test_a_models_name_tells_no_folder(model: str, name: str) -> None:
    """Exports carry it to other machines."""
    assert EngineConfig(model, Path()).model_name == name
