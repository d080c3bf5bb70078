"""The machine: its GPU, the room on its disk, its processor and the system library that vLLM needs.

Each check raises SetupError with one line that says what is missing and what to do. Changes nothing, except that
check_libnuma and offer_tcmalloc install a Debian package where they may.
"""

import ctypes
import re
import shutil
import subprocess
import tempfile
from collections.abc import Mapping
from ctypes.util import find_library
from pathlib import Path
from typing import Literal

from tools import debian
from tools.errors import SetupError

Flavour = Literal["cpu", "gpu"]

DISK_NEEDED_GB: Mapping[Flavour, int] = {"cpu": 6, "gpu": 15}


def has_nvidia_gpu(proc: Path = Path("/proc/driver/nvidia/gpus"), dev: Path = Path("/dev")) -> bool:
    """Return True if an NVIDIA GPU can be used here: nvidia-smi lists one, or the driver has one with its device file.

    The driver's folder alone proves nothing: a container sees the host's.
    """
    return does_nvidia_smi_list_one() or (proc.is_dir() and any(proc.iterdir()) and any(dev.glob("nvidia[0-9]*")))


def does_nvidia_smi_list_one() -> bool:
    """Return True if nvidia-smi runs and names a GPU (under WSL it is not on PATH)."""
    nvidia_smi = shutil.which("nvidia-smi") or shutil.which("nvidia-smi", path="/usr/lib/wsl/lib")
    if nvidia_smi is None:
        return False
    try:
        done = subprocess.run([nvidia_smi, "-L"], capture_output=True, text=True, timeout=30, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return False
    return done.returncode == 0 and "GPU " in done.stdout


def check_folder(root: Path) -> None:
    """Raise SetupError unless files can be made in the folder."""
    try:
        tempfile.TemporaryFile(dir=root).close()
    except OSError as error:
        raise SetupError(f"cannot write to {root} ({error.strerror}): move the clone or fix its permissions") from error


def check_disk(root: Path, flavour: Flavour) -> None:
    """Raise SetupError unless the packages fit on the disk."""
    free_gb = shutil.disk_usage(root).free / 1e9
    needed_gb = DISK_NEEDED_GB[flavour]
    if free_gb < needed_gb:
        raise SetupError(
            f"{needed_gb} GB free disk needed at {root}, {free_gb:.1f} GB there: free some or move the clone"
        )


def check_processor(cpuinfo: Path = Path("/proc/cpuinfo")) -> None:
    """Raise SetupError on a processor without AVX2, which vLLM's CPU kernels use."""
    if not re.search(r"\bavx2\b", cpuinfo.read_text(encoding="utf-8", errors="replace")):
        raise SetupError("this processor has no AVX2, which vLLM for CPU needs: use a machine made after 2015")


def check_libnuma() -> None:
    """Install libnuma, the one system library that vLLM for CPU loads, where it is missing. Raises SetupError."""
    if not does_load("libnuma.so.1") and not debian.install("libnuma1"):
        raise SetupError("the system library libnuma is missing: install it (apt install libnuma1)")


def offer_tcmalloc() -> None:
    """Install tcmalloc where it may, or say what it is good for: heed starts without it, too."""
    if find_library("tcmalloc_minimal") is None and not debian.install("libtcmalloc-minimal4"):
        print("heed: real models learn a third faster with tcmalloc (apt install libtcmalloc-minimal4)", flush=True)


def does_load(library: str) -> bool:
    """Return True if the dynamic loader finds the library."""
    try:
        ctypes.CDLL(library)
    except OSError:
        return False
    return True
