"""Finds a Python that heed can run on and hands over to tools/install.py: `make setup` starts here.

Has to be readable to Python 3.6 (no new syntax, comments for the types of variables), so that a machine with an old
`python3` gets one line that says what to do. Installs nothing and changes nothing itself.
"""

import os
import platform
import subprocess
import sys
from pathlib import Path
from typing import Iterator, List, Optional, Tuple

ROOT = Path(__file__).resolve().parent.parent
SUPPORTED = ((3, 11), (3, 12), (3, 13))  # in this order where `python3` itself will not do: most tested first
WANTED = "Python 3.11, 3.12 or 3.13"
PROBE = (
    "import sys, importlib.util as u;"
    "print(sys.version_info[0], sys.version_info[1], int(all(u.find_spec(m) for m in ('venv', 'ensurepip'))))"
)
PROBE_TIMEOUT_S = 20

Probe = Tuple[int, int, bool]  # major, minor, whether it can make virtual environments


class Unsuitable(Exception):
    """This machine cannot run heed as it is; the text says why and what to do about it."""


def check_machine(system: str, machine: str, libc: str) -> None:
    """Raise Unsuitable unless this is Linux on x86-64 with glibc, the one platform that vLLM's wheels are built for."""
    if system != "Linux" or machine not in ("x86_64", "AMD64"):
        found = "{} on {}".format(system, machine)
        raise Unsuitable(
            "heed needs Linux on x86-64, this is {}: use such a machine, or Docker (docker compose up heed)".format(
                found
            )
        )
    if libc != "glibc":
        raise Unsuitable(
            "heed needs a Linux with glibc 2.28 or later, this one has another C library: "
            "use Debian, Ubuntu, Fedora or the like, or Docker (docker compose up heed)"
        )


def probe(python: str) -> Optional[Probe]:
    """Return what the interpreter at this path is, or None if it does not run (a pyenv shim without its version)."""
    try:
        output = subprocess.check_output([python, "-c", PROBE], stderr=subprocess.DEVNULL, timeout=PROBE_TIMEOUT_S)
        major, minor, can_make_venv = output.split()
    except (OSError, ValueError, subprocess.SubprocessError):
        return None
    return int(major), int(minor), bool(int(can_make_venv))


def on_path() -> Iterator[str]:
    """Interpreters of the supported versions in the folders of PATH, whether they run or not."""
    for major, minor in SUPPORTED:
        for folder in os.environ.get("PATH", os.defpath).split(os.pathsep):
            yield str(Path(folder) / "python{}.{}".format(major, minor))


def in_pyenv() -> Iterator[str]:
    """Interpreters of the supported versions that pyenv has built, newest patch release first."""
    root = os.environ.get("PYENV_ROOT")
    versions = (Path(root) if root else Path.home() / ".pyenv") / "versions"
    for major, minor in SUPPORTED:
        found = versions.glob("{}.{}.*/bin/python".format(major, minor))
        for path in sorted((str(path) for path in found), key=len_then_text, reverse=True):
            yield path


def len_then_text(path: str) -> Tuple[int, str]:
    """Sort key under which 3.11.10 comes after 3.11.9."""
    return len(path), path


def candidates() -> Iterator[str]:
    """Every interpreter worth asking, best first: the one running this, then PATH, then pyenv."""
    yield sys.executable
    for path in on_path():
        if os.access(path, os.X_OK):
            yield path
    for path in in_pyenv():
        if os.access(path, os.X_OK):
            yield path


def find_python() -> str:
    """Return the first candidate of a supported version that can make virtual environments. Raises Unsuitable."""
    without_venv = []  # type: List[str]
    for path in candidates():
        found = probe(path)
        if found is None or found[:2] not in SUPPORTED:
            continue
        if found[2]:
            return path
        without_venv.append("python{}.{}".format(*found))
    raise Unsuitable(why_none(without_venv))


def why_none(without_venv: List[str]) -> str:
    """Return the line to show where no interpreter will do."""
    if without_venv:
        return "{0} cannot make virtual environments: install its venv module (apt install {0}-venv)".format(
            without_venv[0]
        )
    here = "{}.{}".format(*sys.version_info[:2])
    return "heed needs {}, found only {}: install one (apt install python3.11 python3.11-venv)".format(WANTED, here)


def main() -> None:
    """Check the machine, find a Python and become tools/install.py under it."""
    try:
        check_machine(platform.system(), platform.machine(), platform.libc_ver()[0])
        python = find_python()
    except Unsuitable as error:
        sys.stderr.write("heed: {}\n".format(error))
        sys.exit(2)
    os.chdir(str(ROOT))
    os.execv(python, [python, "-m", "tools.install", *sys.argv[1:]])  # noqa: S606 - no shell wanted


if __name__ == "__main__":
    main()
