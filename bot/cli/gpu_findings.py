"""The part of `heed doctor` about an NVIDIA GPU: its driver, and what kernels are compiled with. Imports no library.

The GPU build of PyTorch 2.13 is made with CUDA 13, which needs a driver of the 580 line or newer; Triton compiles a
small C module at the first start, with the machine's compiler and Python's own header.
"""

import re
import shutil
import sysconfig
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

OLDEST_DRIVER = 580
COMPILERS = ("cc", "gcc", "clang")  # in the order in which Triton looks for one


@dataclass(frozen=True)
class GpuFinding:
    """One thing looked at; `remedy` is empty if it is well."""

    name: str
    state: str
    remedy: str = ""


def gpu_findings(dev: Path = Path("/dev"), proc: Path = Path("/proc/driver/nvidia")) -> Iterator[GpuFinding]:
    """Yield what a start on this machine's GPU needs; nothing if there is none."""
    if not any(dev.glob("nvidia[0-9]*")):
        return
    yield _driver(proc / "version")
    yield _compiler()
    yield _header(Path(sysconfig.get_paths()["include"]))


def _driver(version_file: Path) -> GpuFinding:
    text = version_file.read_text(encoding="utf-8", errors="replace") if version_file.is_file() else ""
    found = re.search(r"Kernel Module.*?\b(\d+)((?:\.\d+)+)", text)
    if found is None:
        return GpuFinding("gpu driver", "its version cannot be read", "install NVIDIA's driver, 580 or newer")
    version = found[1] + found[2]
    is_old = int(found[1]) < OLDEST_DRIVER
    return GpuFinding("gpu driver", version, f"install a driver of {OLDEST_DRIVER} or newer" if is_old else "")


def _compiler() -> GpuFinding:
    found = next((path for name in COMPILERS if (path := shutil.which(name))), None)
    return GpuFinding("C compiler", found or "missing", "" if found else "install gcc: kernels are compiled at a start")


def _header(folder: Path) -> GpuFinding:
    is_there = (folder / "Python.h").is_file()
    remedy = "" if is_there else "install Python's development files (python3-dev): kernels are compiled with them"
    return GpuFinding("Python.h", str(folder) if is_there else "missing", remedy)
