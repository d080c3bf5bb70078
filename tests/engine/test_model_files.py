"""Finding the model: a folder, a name, or a clear refusal."""

from pathlib import Path
from typing import Any

import huggingface_hub
import pytest

from engine.errors import ModelNotFoundError
from engine.model_files import local_model_folder


def test_a_folder_is_taken_as_it_is(tiny_model: Path) -> None:
    """As an absolute path."""
    assert local_model_folder(str(tiny_model)) == tiny_model.resolve()


def test_a_relative_folder_works(tiny_model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """From the current folder."""
    monkeypatch.chdir(tiny_model.parent)
    assert local_model_folder(tiny_model.name) == tiny_model.resolve()


@pytest.mark.parametrize("model", ["/no/such/folder", "./missing", "~/missing-model", "missing", "a/b/c"])
def test_a_folder_that_is_not_there_is_named(model: str) -> None:
    """It is not taken for a download."""
    with pytest.raises(ModelNotFoundError, match=r"HEED_MODEL"):
        local_model_folder(model)


def test_a_folder_without_a_model_is_refused(tmp_path: Path) -> None:
    """It says what is missing."""
    with pytest.raises(ModelNotFoundError, match=r"config\.json"):
        local_model_folder(str(tmp_path))


def test_a_name_is_downloaded_once(tiny_model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Weights, configuration and tokenizer; no code."""
    asked: list[Any] = []

    def download(model: str, allow_patterns: list[str]) -> str:
        asked.append((model, allow_patterns))
        return str(tiny_model)

    monkeypatch.setattr(huggingface_hub, "snapshot_download", download)
    assert local_model_folder("Qwen/Qwen3-8B") == tiny_model
    assert asked[0][0] == "Qwen/Qwen3-8B"
    assert not any(pattern.endswith("py") for pattern in asked[0][1])


def test_a_failed_download_is_a_clear_refusal(monkeypatch: pytest.MonkeyPatch) -> None:
    """No network, no such name, no permission."""

    def refuse(*_args: object, **_kwargs: object) -> str:
        raise OSError("no route to host")

    monkeypatch.setattr(huggingface_hub, "snapshot_download", refuse)
    with pytest.raises(ModelNotFoundError, match="no route to host"):
        local_model_folder("Qwen/Qwen3-8B")
