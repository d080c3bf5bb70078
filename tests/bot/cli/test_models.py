"""bot.cli.models: the list of models that can be named."""

import shutil
from pathlib import Path

from bot.cli.models import lines
from bot.config import Settings
from engine.pocket import WEIGHTS


def test_the_list_says_what_each_model_needs_and_how_to_name_others(tmp_path: Path) -> None:
    """The chosen model is marked, also where it is not there yet; nothing is made or fetched."""
    said = list(lines(Settings(data_dir=tmp_path / "data", model="smollm2")))
    text = "\n".join(said)
    assert "* smollm2: SmolLM2-135M-Instruct" in said
    assert "  pocket: The pocket model" in said
    assert "  workshop: The pocket model's workshop" in said
    assert "fetched at the first start; licence Apache-2.0" in text
    assert "GB of memory; here; licence Apache-2.0; calibrated" in text
    assert "HEED_MODEL=owner/name" in text
    assert not (tmp_path / "data").exists()


def test_a_folder_in_the_data_directory_is_listed(tmp_path: Path) -> None:
    """Its name is the path that HEED_MODEL takes."""
    folder = shutil.copytree(WEIGHTS, tmp_path / "models" / "mine")
    text = "\n".join(lines(Settings(data_dir=tmp_path, model=str(folder))))
    assert f"* {folder}: mine\n" in text
    assert "licence: see its folder; calibrated" in text
