"""The part of `heed doctor` about an NVIDIA GPU: its driver, and what kernels are compiled with.

The GPU build of PyTorch 2.13 is made with CUDA 13, which needs a driver of the 580 line or newer; Triton compiles a
small C module at the first start, with the machine's compiler and Python's own header.
"""

import re
import shutil
import sysconfig
from collections.abc import Iterator
from pathlib import Path

from bot.cli.finding import Finding
from engine.models import has_gpu

OLDEST_DRIVER = 580
COMPILERS = ("cc", "gcc", "clang")  # in the order in which Triton looks for one


def gpu_findings(dev: Path = Path("/dev"), proc: Path = Path("/proc/driver/nvidia")) -> Iterator[Finding]:
    """Yield what a start on this machine's GPU needs; nothing if there is none."""
    if not has_gpu(dev):
        return
    yield _driver(proc / "version")
    yield _compiler()
    yield _header(Path(sysconfig.get_paths()["include"]))


def _driver(version_file: Path) -> Finding:
    text = version_file.read_text(encoding="utf-8", errors="replace") if version_file.is_file() else ""
    found = re.search(r"Kernel Module.*?\b(\d+)((?:\.\d+)+)", text)
    if found is None:
        return Finding("gpu driver", "its version cannot be read", f"install NVIDIA's driver, {OLDEST_DRIVER} or newer")
    version = found[1] + found[2]
    is_old = int(found[1]) < OLDEST_DRIVER
    return Finding("gpu driver", version, f"install a driver of {OLDEST_DRIVER} or newer" if is_old else "")


def _compiler() -> Finding:
    found = next((path for name in COMPILERS if (path := shutil.which(name))), None)
    return Finding("C compiler", found or "missing", "" if found else "install gcc: kernels are compiled at a start")


def _header(folder: Path) -> Finding:
    is_there = (folder / "Python.h").is_file()
    remedy = "" if is_there else "install Python's development files (python3-dev): kernels are compiled with them"
    return Finding("Python.h", str(folder) if is_there else "missing", remedy)
