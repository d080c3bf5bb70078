"""Where the model's files are: a folder given by path, or a download by name.

Invariant: after this nothing else asks a hub; vLLM and the trainer are both given the same local folder.
"""

import hashlib
from pathlib import Path

from engine.errors import ModelNotFoundError

CONFIG_FILE = "config.json"
_EDGE_BYTES = 1 << 20
NEEDED_FILES = ["*.json", "*.safetensors", "*.jinja", "*.txt", "*.model"]


def local_model_folder(model: str) -> Path:
    """The folder with the model's files, downloading them by name if need be. Blocking. Raises ModelNotFoundError."""
    folder = Path(model).expanduser()
    if folder.is_dir():
        return _checked(folder.resolve())
    if folder.is_absolute() or model.startswith((".", "~")) or model.count("/") != 1:
        raise ModelNotFoundError(f"there is no model folder {model}: set HEED_MODEL to a folder or to owner/name")
    return _downloaded(model)


def fingerprint(folder: Path) -> str:
    """What tells one base model from another wherever its folder lies: 16 hex digits. Blocking: milliseconds.

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


def _checked(folder: Path) -> Path:
    if not (folder / CONFIG_FILE).is_file():
        raise ModelNotFoundError(f"{folder} holds no {CONFIG_FILE}: it is not a Hugging Face model folder")
    return folder


def _downloaded(model: str) -> Path:
    from huggingface_hub import snapshot_download

    try:
        return Path(snapshot_download(model, allow_patterns=NEEDED_FILES))
    except (OSError, ValueError) as error:  # HfHubHTTPError and connection errors are OSErrors
        raise ModelNotFoundError(f"the model {model} cannot be downloaded: {error}") from error
