"""One adapter as a zip file: PEFT's two files, a manifest and a README. No optimizer state, and never a pickle.

Owns the format and the caps. Invariants: nothing is ever extracted to disk from a zip, so no name in it can lead
anywhere; an accepted file has exactly the members listed here, each as large as it says and with the manifest's
SHA-256; any fault raises AdapterRefused before anything was changed.
"""

import hashlib
import io
import json
import stat
import zipfile
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from safetensors import SafetensorError

from engine.adapter_ref import CONFIG_FILE, TENSORS_FILE
from engine.adapters.tensor_values import read_values
from engine.errors import AdapterRefused

FORMAT = "heed adapter 1"
MANIFEST_FILE, README_FILE = "manifest.json", "README.md"
NEEDED_FILES = (CONFIG_FILE, TENSORS_FILE, MANIFEST_FILE)
KNOWN_FILES = (*NEEDED_FILES, README_FILE)
# The errors that zipfile raises on a broken file; ValueError if an offset in it points before its beginning.
BROKEN = (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, OSError, RuntimeError, ValueError)
MAX_TEXT_BYTES = 1 << 20  # of each file that is not the tensors
METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)  # the others may want gigabytes to unpack a few bytes
PICKLES = (".bin", ".pt", ".pth", ".pkl", ".pickle", ".ckpt")
MUST_BE = {"peft_type": "LORA", "task_type": "CAUSAL_LM"}
MUST_BE_OFF = (
    "use_dora", "use_rslora", "fan_in_fan_out", "modules_to_save", "rank_pattern", "alpha_pattern", "lora_bias",
    "layers_to_transform", "layer_replication", "trainable_token_indices", "target_parameters", "exclude_modules",
)  # fmt: skip
README = """# A LoRA adapter made by heed

Made for the model `{model}` (fingerprint {base_model}), version {version} of its person's adapter, rank {rank}.

- `{config}` and `{tensors}`: the adapter as PEFT reads it: `PeftModel.from_pretrained(model, "this folder")`.
- `{manifest}`: the SHA-256 of both files and the model they were made for. `heed adapters import` checks them.

It holds what one person taught. Anyone who has the file may be able to find out what that was.
"""

Files = Mapping[str, bytes]


@dataclass(frozen=True)
class AdapterPackage:
    """The content of a zip file, checked as far as that needs no model."""

    config: dict[str, Any]
    tensors: bytes
    base_model: str  # fingerprint
    origin: str  # as the manifest calls it


def pack(files: Files, base_model: str, name: str, version: int) -> bytes:
    """Return the zip file of an adapter's directory. `name`: the model's public name, `base_model`: its fingerprint."""
    config = json.loads(files[CONFIG_FILE]) | {"base_model_name_or_path": name}
    written = {CONFIG_FILE: _json(config), TENSORS_FILE: files[TENSORS_FILE]}
    manifest = {
        "format": FORMAT,
        "model": name,
        "base_model": base_model,
        "version": version,
        "sha256": {name: hashlib.sha256(data).hexdigest() for name, data in written.items()},
    }
    words = {"config": CONFIG_FILE, "tensors": TENSORS_FILE, "manifest": MANIFEST_FILE, "rank": config["r"]}
    readme = README.format(model=name, base_model=base_model, version=version, **words)
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for file, data in {**written, MANIFEST_FILE: _json(manifest), README_FILE: readme.encode()}.items():
            archive.writestr(file, data)
    return buffer.getvalue()


def unpack(content: bytes, limit_bytes: int) -> AdapterPackage:
    """Return the content of a zip file. Blocking. Raise AdapterRefused; `limit_bytes` bounds the unpacked size."""
    files = _read(content, limit_bytes)
    manifest = _object(files, MANIFEST_FILE)
    if manifest.get("format") != FORMAT:
        raise AdapterRefused(f"{MANIFEST_FILE} is not one of a {FORMAT}")
    known = manifest.get("sha256")
    for name in (CONFIG_FILE, TENSORS_FILE):
        if not isinstance(known, dict) or known.get(name) != hashlib.sha256(files[name]).hexdigest():
            raise AdapterRefused(f"{name} is not what {MANIFEST_FILE} says: its SHA-256 differs")
    config = _object(files, CONFIG_FILE)
    _check_config(config)
    _check_tensors(files[TENSORS_FILE], config["r"])
    origin = f"v{manifest.get('version')} of an adapter for {manifest.get('model')}"
    return AdapterPackage(config, files[TENSORS_FILE], str(manifest.get("base_model")), origin[:200])


def _json(value: dict[str, Any]) -> bytes:
    return (json.dumps(value, indent=2, sort_keys=True) + "\n").encode()


def _read(content: bytes, limit_bytes: int) -> dict[str, bytes]:
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            entries = archive.infolist()
            _check_entries(entries, limit_bytes)
            return {entry.filename: _member(archive, entry) for entry in entries}
    except AdapterRefused:
        raise
    except BROKEN as error:
        raise AdapterRefused(f"the file is no zip file, or a broken one: {error}") from error


def _member(archive: zipfile.ZipFile, entry: zipfile.ZipInfo) -> bytes:
    """Read one member, never more of it than its stated size."""
    with archive.open(entry) as file:
        data = file.read(entry.file_size + 1)
    if len(data) != entry.file_size:
        raise AdapterRefused(f"{entry.filename} is not as large as the zip file says")
    return data


def _check_entries(entries: list[zipfile.ZipInfo], limit_bytes: int) -> None:
    names = [entry.filename for entry in entries]
    for entry in entries:
        _check_entry(entry)
    if len(set(names)) != len(names):
        raise AdapterRefused("the zip file has a file twice")
    missing = [name for name in NEEDED_FILES if name not in names]
    if missing:
        raise AdapterRefused(f"the zip file has no {' and no '.join(missing)}")
    if sum(entry.file_size for entry in entries) > limit_bytes:
        raise AdapterRefused(f"the zip file unpacks to more than {limit_bytes} bytes")


def _check_entry(entry: zipfile.ZipInfo) -> None:
    name = entry.filename if entry.filename.isprintable() else ascii(entry.filename)
    if name.lower().endswith(PICKLES):
        raise AdapterRefused(f"the zip file has a pickle, {name[:80]}, which could run any program; send safetensors")
    if name.startswith(("/", "\\")) or ".." in name or ":" in name:
        raise AdapterRefused(f"the zip file has a file that leads out of its folder: {name[:80]}")
    kind = stat.S_IFMT(entry.external_attr >> 16)
    if kind not in (0, stat.S_IFREG):
        raise AdapterRefused(f"the zip file has a link or a folder, {name[:80]}; plain files only")
    if name not in KNOWN_FILES:
        raise AdapterRefused(f"the zip file has a file that is no part of an adapter: {name[:80]}")
    if entry.flag_bits & 1 or entry.compress_type not in METHODS:
        raise AdapterRefused(f"{name} is encrypted or packed in an unusual way")
    if name != TENSORS_FILE and entry.file_size > MAX_TEXT_BYTES:
        raise AdapterRefused(f"{name} is larger than {MAX_TEXT_BYTES} bytes")


def _object(files: Files, name: str) -> dict[str, Any]:
    try:
        value = json.loads(files[name])
    except (ValueError, RecursionError) as error:
        raise AdapterRefused(f"{name} is not JSON") from error
    if not isinstance(value, dict):
        raise AdapterRefused(f"{name} is not a JSON object")
    return value


def _check_config(config: dict[str, Any]) -> None:
    for name, wanted in MUST_BE.items():
        if config.get(name) != wanted:
            raise AdapterRefused(f"{CONFIG_FILE}: {name} is {config.get(name)!r}, and heed takes {wanted} only")
    used = [name for name in MUST_BE_OFF if config.get(name)]
    if used or config.get("bias", "none") != "none":
        raise AdapterRefused(f"{CONFIG_FILE}: heed does not know {', '.join(used) or 'bias'}")
    for name in ("r", "lora_alpha"):
        if not isinstance(config.get(name), int) or isinstance(config[name], bool) or not 1 <= config[name] <= 4096:
            raise AdapterRefused(f"{CONFIG_FILE}: {name} is {config.get(name)!r}, not a number from 1 to 4096")
    targets = config.get("target_modules")
    if not isinstance(targets, list) or not targets or not all(isinstance(name, str) for name in targets):
        raise AdapterRefused(f"{CONFIG_FILE}: target_modules is no list of names")


def _check_tensors(content: bytes, rank: int) -> None:
    """Raise AdapterRefused unless the tensors are of a type of heed's, finite and of the configuration's rank."""
    try:
        tensors = read_values(content)
    except (SafetensorError, ValueError) as error:
        raise AdapterRefused(f"{TENSORS_FILE} cannot be read: {error}") from error
    if not tensors:
        raise AdapterRefused(f"{TENSORS_FILE} holds no tensors")
    for name, tensor in tensors.items():
        axis = 0 if ".lora_A." in name else 1
        if tensor.ndim != 2 or tensor.shape[axis] != rank:
            raise AdapterRefused(f"{name[:120]} has shape {tensor.shape}, which is not of rank {rank}")
        if not np.isfinite(tensor).all():
            raise AdapterRefused(f"{name[:120]} has a value that is not a number")
