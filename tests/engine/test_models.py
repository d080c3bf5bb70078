"""engine.models: what can be named here, and what it needs."""

import shutil
from dataclasses import replace
from pathlib import Path

from engine.calibration import prior, record
from engine.config import EngineConfig
from engine.host.model_files import fingerprint
from engine.models import is_calibrated, named_models, title_of
from engine.pocket import WEIGHTS


def test_models_that_are_here_and_that_can_be_fetched_are_listed(tiny_model: Path, tmp_path: Path) -> None:
    """The pocket model, packaged ones and folders in the data directory, each with its memory; no half fetched one."""
    for name in ("mine", ".SmolLM2-135M-Instruct.part"):
        shutil.copytree(tiny_model, tmp_path / "models" / name)
    pocket, workshop, smollm2, mine = named_models(EngineConfig("pocket", tmp_path))
    assert (pocket.name, pocket.is_here, pocket.is_calibrated) == ("pocket", True, True)
    assert (workshop.name, workshop.is_here, workshop.title) == ("workshop", True, "The pocket model's workshop")
    assert (smollm2.name, smollm2.is_here, smollm2.is_calibrated) == ("smollm2", False, True)
    assert smollm2.licence == "Apache-2.0"
    assert (mine.name, mine.title, mine.is_calibrated) == (str(tmp_path / "models" / "mine"), "mine", False)
    assert (pocket.memory or 0) < (smollm2.memory or 0) < 10e9
    assert mine.memory


def test_a_folder_that_does_not_tell_its_shape_is_listed_without_memory(tiny_model: Path, tmp_path: Path) -> None:
    """A broken config.json keeps no one from the list."""
    folder = Path(shutil.copytree(tiny_model, tmp_path / "models" / "broken"))
    (folder / "config.json").write_text("{")
    assert named_models(EngineConfig("pocket", tmp_path))[-1].memory is None


def test_a_calibration_made_here_counts(tiny_model: Path, tmp_path: Path) -> None:
    """It is the one that a start would find: measured, on this model, and with these settings."""
    config = EngineConfig(str(tiny_model), tmp_path)
    other_rank = replace(config, learn=replace(config.learn, lora_rank=8))
    made = prior.estimate(tiny_model, "m", fingerprint(tiny_model), config.learn)
    record.keep(made, tmp_path)
    assert not is_calibrated(tiny_model, config)
    record.keep(replace(made, is_measured=True), tmp_path)
    assert is_calibrated(tiny_model, config)
    assert not is_calibrated(tiny_model, other_rank)


def test_models_have_names_for_people() -> None:
    """A folder is called by its last part, a packaged model by its own name."""
    assert title_of("pocket") == title_of(str(WEIGHTS)) == "The pocket model"
    assert title_of("smollm2") == "SmolLM2-135M-Instruct"
    assert title_of("/models/mine") == "mine"
    assert title_of("Qwen/Qwen3-8B") == "Qwen/Qwen3-8B"
