"""engine.host.model_check: what is wrong with a folder is said before vLLM is started."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from engine.errors import ModelDamaged, ModelUnsuitable
from engine.host.model_check import INDEX_FILE, check_folder


@pytest.fixture
def folder(tiny_model: Path, tmp_path: Path) -> Path:
    """A whole model."""
    return Path(shutil.copytree(tiny_model, tmp_path / "model"))


def edit(path: Path, **values: Any) -> None:
    """Change entries of a JSON file; None removes one."""
    content = json.loads(path.read_text()) | values
    path.write_text(json.dumps({name: value for name, value in content.items() if value is not None}))


def cut(folder: Path) -> None:
    """Cut the weights."""
    weights = folder / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-1])


def without_template(folder: Path) -> None:
    """Remove the chat template, wherever it is."""
    (folder / "chat_template.jinja").unlink(missing_ok=True)
    edit(folder / "tokenizer_config.json", chat_template=None)


def test_a_whole_model_is_taken(folder: Path, pocket: Path) -> None:
    """A folder that transformers wrote passes, and so does the pocket model."""
    check_folder(folder)
    check_folder(pocket)


def test_weights_in_parts_are_looked_for_one_by_one(folder: Path) -> None:
    """A shard that the index names and that is not there is named."""
    (folder / INDEX_FILE).write_text(json.dumps({"weight_map": {"a": "model.safetensors", "b": "model-2.safetensors"}}))
    with pytest.raises(ModelDamaged, match=r"model-2\.safetensors are missing"):
        check_folder(folder)


@pytest.mark.parametrize(
    ("harm", "error", "words"),
    [
        (cut, ModelDamaged, "bytes instead of"),
        (lambda f: (f / "model.safetensors").write_bytes(b"\xff" * 20), ModelDamaged, "cut short"),
        (lambda f: (f / "model.safetensors").write_bytes(b"\x02" + bytes(7) + b"[]"), ModelDamaged, "cannot be read"),
        (lambda f: (f / "model.safetensors").unlink(), ModelDamaged, "no weights"),
        (lambda f: (f / "model.safetensors").rename(f / "model.bin"), ModelUnsuitable, r"model\.bin"),
        (lambda f: (f / "tokenizer.json").unlink(), ModelUnsuitable, r"no tokenizer\.json"),
        (lambda f: (f / "tokenizer.json").write_text('{"model": null}'), ModelDamaged, r"tokenizer\.json is not what"),
        (lambda f: (f / "tokenizer.json").write_text('{"model": {"vocab": {}}}'), ModelDamaged, "is not what"),
        (lambda f: (f / "tokenizer.json").write_text('{"model": {"vocab": {"a": "b"}}}'), ModelDamaged, "is not what"),
        (lambda f: (f / INDEX_FILE).write_text('{"weight_map": []}'), ModelDamaged, r"index\.json is not what"),
        (lambda f: (f / "config.json").write_text("{"), ModelDamaged, r"config\.json cannot be read"),
        (lambda f: (f / "config.json").write_text("[]"), ModelDamaged, "not what it should be"),
        (lambda f: edit(f / "config.json", hidden_size=None), ModelUnsuitable, "qwen3.*hidden_size"),
        (lambda f: edit(f / "config.json", vocab_size=100), ModelUnsuitable, "different models"),
        (without_template, ModelUnsuitable, "no chat template"),
    ],
)
def test_what_is_wrong_is_named(
    folder: Path, harm: Callable[[Path], object], error: type[Exception], words: str
) -> None:
    """Each refusal names the file, and what to do."""
    harm(folder)
    with pytest.raises(error, match=words):
        check_folder(folder)
