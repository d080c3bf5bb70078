"""How a result was made: the commit, the weights, the machine. Every result file carries it.

Invariant: what cannot be found out is None, never a guess.
"""

import hashlib
import os
import platform
import subprocess
import time
from dataclasses import asdict
from functools import cache
from pathlib import Path
from typing import Any

from engine.pocket import PACKAGED
from engine.sources import smollm2
from evals import configuration

_ROOT = Path(__file__).parent.parent
_CHUNK_BYTES = 1 << 20
_SECRET = ("TOKEN", "KEY", "URL", "SECRET", "PASSWORD")
_DATA = Path("data")  # heed's data directory where nothing else is set
DATABASE = "database"  # an argument: its address may hold a password
POCKET = "pocket"  # what heed calls the model it brings along: a name, not its folder


def made(
    command: str, config: Any, model: str, before: dict[str, Any], data: Path = _DATA, *, runs_heed: bool = True
) -> dict[str, Any]:
    """Return how a result was made: the head of its file. `config` is a dataclass, `before` the machine at the start.

    `data` is heed's data directory, in which a model may lie; `runs_heed`: a heed of its own was measured, whose whole
    configuration is told. A secret among heed's variables is left out, and so is a database's address. Blocking.
    """
    folder = folder_of(model, data, _given(config))
    return {
        "command": command, "model": model, "weights_sha256": weights_sha256(folder),
        "config": {key: value for key, value in asdict(config).items() if key != DATABASE or not value},
        "heed": heed_of(config, model, data) if runs_heed else None,
        "settings": {key: value for key, value in os.environ.items() if is_told(key)},
        "finished_at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        **commit(), "machine": {"at_start": before, "at_end": machine()},
    }  # fmt: skip


def heed_of(config: Any, model: str, data: Path) -> dict[str, Any] | None:
    """Return the whole configuration of the heed that was measured, None for one that someone else started. Blocking.

    Call it while the model's folder is there: a heed for the time being takes it along.
    """
    if getattr(config, "url", ""):
        return None
    given = _given(config)
    return configuration.of_heed(given, folder_of(model, data, given), data)


def folder_of(model: str, data: Path = _DATA, given: str = "") -> Path:
    """Return the folder of a model that is named as in HEED_MODEL, or as heed tells it: without the way to its folder.

    `given` is the HEED_MODEL that heed was started with; a relative folder is one of this checkout, as for heed.
    """
    if model in PACKAGED:
        return PACKAGED[model]
    folder, own = _ROOT / Path(given).expanduser(), smollm2.folder_in(data)
    if given and folder.name == model and folder.is_dir():
        return folder
    return own if model in (smollm2.NAME, own.name) else Path(model)


def weights_of(model: str, folder: Path) -> str | None:
    """Return the hash of a model's weights while the heed that serves it, with its data in a folder, is there."""
    return weights_sha256(folder_of(model, folder / _DATA, os.environ.get("HEED_MODEL", "")))


def _given(config: Any) -> str:
    """Return the model that the measured heed was started with; empty if it was started by someone else."""
    if getattr(config, "url", ""):
        return ""
    return getattr(config, "model", "") or os.environ.get("HEED_MODEL", "")


def is_told(key: str) -> bool:
    """Return True for a variable of heed that holds no secret."""
    return key.startswith("HEED_") and not any(word in key for word in _SECRET)


def commit() -> dict[str, Any]:
    """Return the commit of this checkout, and whether tracked files differ from it."""
    head, changes = _git("rev-parse", "HEAD"), _git("status", "--porcelain", "--untracked-files=no")
    return {"commit": head, "is_dirty": None if changes is None else bool(changes)}


def machine() -> dict[str, Any]:
    """Return the machine as it is now: processor, cores for this process, load, memory in GB."""
    return {
        "cpu": _line("/proc/cpuinfo", "model name") or platform.processor() or None,
        "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
        "load": [round(load, 2) for load in os.getloadavg()],
        "memory_gb": _gigabytes("MemTotal"),
        "available_gb": _gigabytes("MemAvailable"),
    }


@cache
def weights_sha256(folder: Path) -> str | None:
    """Return the SHA-256 over a model folder's safetensors in the order of their names. Blocking."""
    files = sorted(folder.glob("*.safetensors")) if folder.is_dir() else []
    digest = hashlib.sha256()
    for path in files:
        with path.open("rb") as data:
            while chunk := data.read(_CHUNK_BYTES):
                digest.update(chunk)
    return digest.hexdigest() if files else None


def _git(*words: str) -> str | None:
    try:
        done = subprocess.run(
            ("git", *words),  # noqa: S607 - the git of the person's own path made this checkout
            cwd=_ROOT, capture_output=True, text=True, timeout=30, check=True,
        )  # fmt: skip
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip()


def _line(path: str, key: str) -> str | None:
    try:
        lines = Path(path).read_text(encoding="utf-8").splitlines()
    except OSError:
        return None
    return next((line.partition(":")[2].strip() for line in lines if line.startswith(key)), None)


def _gigabytes(key: str) -> float | None:
    found = _line("/proc/meminfo", key)
    return None if found is None else round(int(found.split()[0]) / 1e6, 1)
