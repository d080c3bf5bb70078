"""Looks at a model folder before vLLM is started: is everything there, whole, and of one piece?

Reads configuration, tokenizer and the heads of the weight files, never the weights. Every refusal names the remedy.
"""

import json
from pathlib import Path
from typing import Any

from engine.errors import ModelDamaged, ModelUnsuitable
from engine.host.model_shape import ModelShape

INDEX_FILE = "model.safetensors.index.json"
_LENGTH_BYTES = 8  # of the number before a safetensors header
_NOT_AS_IT_SHOULD_BE = "The file {path} is not what it should be. Fetch the model again."
_OTHER_WEIGHTS = ("*.bin", "*.pt", "*.pth", "*.gguf")


def check_folder(folder: Path) -> None:
    """Raise ModelUnsuitable if heed cannot serve this model, ModelDamaged if files are missing or cut. Blocking."""
    shape = _shape(folder)
    _check_weights(folder)
    _check_tokenizer(folder, shape)
    if not has_chat_template(folder):
        raise ModelUnsuitable(
            f"The model in {folder} has no chat template. Choose a chat model, often named -Instruct or -it, or put "
            "a chat_template.jinja into the folder."
        )


def has_chat_template(folder: Path) -> bool:
    """Return True if the folder says how conversations are written. Blocking."""
    if (folder / "chat_template.jinja").is_file() or (folder / "chat_template.json").is_file():
        return True
    return bool(_json(folder, "tokenizer_config.json").get("chat_template"))


def _shape(folder: Path) -> ModelShape:
    settings = _json(folder, "config.json")
    try:
        return ModelShape.of(settings)
    except (KeyError, TypeError, ValueError) as error:
        kind = settings.get("model_type") or "unknown"
        raise ModelUnsuitable(
            f"The model in {folder} is of a kind ({kind}) that heed does not know: its config.json has no usable "
            f"{error}. Choose a text model that answers chats; `heed models` names some."
        ) from error


def _check_weights(folder: Path) -> None:
    files = _weight_files(folder)
    if not files:
        others = next((found for pattern in _OTHER_WEIGHTS for found in folder.glob(pattern)), None)
        if others is not None:
            raise ModelUnsuitable(
                f"The model in {folder} has its weights as {others.name}, and heed reads .safetensors files: "
                "choose the model in that form."
            )
        raise ModelDamaged(f"The model folder {folder} has no weights (*.safetensors). Fetch the model again.")
    for file in files:
        problem = _problem(file)
        if problem:
            raise ModelDamaged(f"The weights {file} {problem}. Delete that file and fetch the model again.")


def _weight_files(folder: Path) -> list[Path]:
    placed = _json(folder, INDEX_FILE).get("weight_map", {})
    if not isinstance(placed, dict):
        raise ModelDamaged(_NOT_AS_IT_SHOULD_BE.format(path=folder / INDEX_FILE))
    named = {folder / str(name) for name in placed.values()}
    return sorted(named or folder.glob("*.safetensors"))


def _problem(file: Path) -> str:
    """Return what is wrong with a safetensors file: its head tells how long it has to be."""
    if not file.is_file():
        return "are missing"
    size = file.stat().st_size
    with file.open("rb") as content:
        length = int.from_bytes(content.read(_LENGTH_BYTES), "little")
        if length > size - _LENGTH_BYTES:
            return f"are cut short at {size} bytes"
        try:
            head: dict[str, Any] = json.loads(content.read(length))
            end = max((entry["data_offsets"][1] for name, entry in head.items() if name != "__metadata__"), default=0)
        except (ValueError, KeyError, TypeError, IndexError, AttributeError):
            return "cannot be read"
    whole = _LENGTH_BYTES + length + end
    return "" if size == whole else f"have {size} bytes instead of {whole}"


def _check_tokenizer(folder: Path, shape: ModelShape) -> None:
    if not (folder / "tokenizer.json").is_file():
        raise ModelUnsuitable(
            f"The model folder {folder} has no tokenizer.json. Fetch the model again, or choose one that has it."
        )
    try:
        known = _json(folder, "tokenizer.json")["model"]["vocab"]
        highest = max(map(int, known.values())) if isinstance(known, dict) else len(known) - 1
    except (KeyError, TypeError, ValueError) as error:
        raise ModelDamaged(_NOT_AS_IT_SHOULD_BE.format(path=folder / "tokenizer.json")) from error
    if highest >= shape.vocab_size:
        raise ModelUnsuitable(
            f"The tokenizer in {folder} has tokens up to {highest} and the model only {shape.vocab_size} of them. "
            "The files belong to different models: fetch the model again."
        )


def _json(folder: Path, name: str) -> dict[str, Any]:
    """Return the content of a file, {} if there is none. Raises ModelDamaged if it is no JSON object."""
    path = folder / name
    if not path.is_file():
        return {}
    try:
        content = json.loads(path.read_bytes())
    except (OSError, ValueError) as error:
        raise ModelDamaged(f"The file {path} cannot be read ({error}). Fetch the model again.") from error
    if not isinstance(content, dict):
        raise ModelDamaged(_NOT_AS_IT_SHOULD_BE.format(path=path))
    return content
