"""The model's files: a folder given by path, or a download by name.

Invariant: after this nothing else asks a hub; vLLM and the trainer are both given the same local folder.
"""

import hashlib
import json
from collections.abc import Callable
from pathlib import Path

from engine.errors import ModelNotFoundError, TokenizerMismatch
from engine.sources import hub, smollm2

CONFIG_FILE = "config.json"
TOKENIZER_FILE = "tokenizer.json"
Progress = Callable[[str], None]
_EDGE_BYTES = 1 << 20


def local_model_folder(model: str, data_dir: Path, progress: Progress = lambda _line: None) -> Path:
    """Return the folder with the model's files, downloaded by name if need be. Blocking.

    Raises ModelNotFoundError, and ModelFetchError for a model that cannot be fetched.
    """
    if model == smollm2.NAME:
        return smollm2.prepare(data_dir, progress)
    folder = Path(model).expanduser()
    if folder.is_dir():
        return _checked(folder.resolve())
    if folder.is_absolute() or model.startswith((".", "~")) or model.count("/") != 1:
        raise ModelNotFoundError(f"There is no model folder {model}. Set HEED_MODEL to a folder or to owner/name.")
    return hub.download(model, progress)


def fingerprint(folder: Path) -> str:
    """Return 16 hex digits that tell one base model from another in any folder. Blocking: milliseconds.

    Hashes the configuration and each weight file's name, size and first and last MiB, so that gigabytes are not read
    at every start.
    """
    digest = hashlib.sha256((folder / CONFIG_FILE).read_bytes())
    for path in sorted(folder.glob("*.safetensors")):
        digest.update(f"{path.name}\0{path.stat().st_size}\0".encode())
        with path.open("rb") as file:
            digest.update(file.read(_EDGE_BYTES))
            file.seek(max(0, path.stat().st_size - _EDGE_BYTES))
            digest.update(file.read(_EDGE_BYTES))
    return digest.hexdigest()[:16]


def teacher_folder(teacher: str, folder: Path, data_dir: Path, progress: Progress = lambda _line: None) -> Path | None:
    """Return the folder of the model that teaches the one in `folder`, or None for none. Blocking.

    Raises ModelNotFoundError, ModelFetchError, and TokenizerMismatch if a token has another id, or none, in one.
    """
    if not teacher:
        return None
    found = local_model_folder(teacher, data_dir, progress)
    own, others = vocabulary(folder), vocabulary(found)
    if own != others:
        different = sorted(token for token in own.keys() | others.keys() if own.get(token) != others.get(token))
        raise TokenizerMismatch(
            f"The teacher {found} has another tokenizer than the model {folder}: {len(different)} tokens differ, "
            f"{different[0]!r} is {others.get(different[0])} and {own.get(different[0])}. "
            "Set HEED_HOST_TEACHER_MODEL to a model of the same family."
        )
    return found


def vocabulary(folder: Path) -> dict[str, int]:
    """Return every token of a model folder's tokenizer with its id. Raises ModelNotFoundError if it cannot be read."""
    try:
        raw = json.loads((folder / TOKENIZER_FILE).read_bytes())
        known = raw["model"]["vocab"]
        ids = known if isinstance(known, dict) else {entry[0]: number for number, entry in enumerate(known)}
        return dict(ids) | {token["content"]: token["id"] for token in raw.get("added_tokens", [])}
    except (OSError, ValueError, KeyError, TypeError, IndexError) as error:
        raise ModelNotFoundError(
            f"The model folder {folder} has no {TOKENIZER_FILE} that can be read: {error}."
        ) from error


def _checked(folder: Path) -> Path:
    if not (folder / CONFIG_FILE).is_file():
        raise ModelNotFoundError(f"The folder {folder} has no {CONFIG_FILE}, so it is no Hugging Face model folder.")
    return folder
