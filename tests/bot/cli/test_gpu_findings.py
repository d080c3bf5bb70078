"""bot.cli.gpu_findings: a driver too old, no compiler and no header are named with their remedies."""

from pathlib import Path

import pytest

from bot.cli.gpu_findings import gpu_findings

VERSION = "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  {}  Release Build  (dvs-builder)\nGCC version: 12\n"


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine with a GPU, a driver, a compiler and Python's header."""
    (tmp_path / "nvidia0").touch()
    (tmp_path / "version").write_text(VERSION.format("580.65.06"))
    (tmp_path / "Python.h").touch()
    monkeypatch.setattr("shutil.which", lambda name: f"/usr/bin/{name}")
    monkeypatch.setattr("sysconfig.get_paths", lambda: {"include": str(tmp_path)})
    return tmp_path


def found(machine: Path) -> dict[str, tuple[str, str]]:
    """What is found, by name."""
    return {finding.name: (finding.state, finding.remedy) for finding in gpu_findings(machine, machine)}


def test_a_machine_that_has_all_of_it_needs_nothing(machine: Path) -> None:
    """Each with its version or place."""
    assert found(machine) == {
        "gpu driver": ("580.65.06", ""),
        "C compiler": ("/usr/bin/cc", ""),
        "Python.h": (str(machine), ""),
    }


@pytest.mark.parametrize(
    ("text", "state"),
    [
        (VERSION.format("535.183.01"), "535.183.01"),
        ("NVRM version: NVIDIA UNIX x86_64 Kernel Module  470.256.02  Thu May  2\n", "470.256.02"),
        ("", "its version cannot be read"),
    ],
)
def test_an_old_driver_is_named(machine: Path, text: str, state: str) -> None:
    """Also one whose version cannot be read."""
    (machine / "version").write_text(text)
    assert found(machine)["gpu driver"][0] == state
    assert "580 or newer" in found(machine)["gpu driver"][1]


def test_what_kernels_are_compiled_with_is_looked_for(machine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A compiler and Python's header; either may be missing by itself."""
    (machine / "Python.h").unlink()
    monkeypatch.setattr("shutil.which", lambda name: "/opt/clang" if name == "clang" else None)
    assert found(machine)["C compiler"] == ("/opt/clang", "")
    assert "python3-dev" in found(machine)["Python.h"][1]
    monkeypatch.setattr("shutil.which", lambda _: None)
    assert "install gcc" in found(machine)["C compiler"][1]


def test_without_a_gpu_nothing_is_looked_at(tmp_path: Path) -> None:
    """A driver's folder alone, as a container sees its host's, is none."""
    (tmp_path / "version").write_text(VERSION.format("470.1"))
    assert list(gpu_findings(tmp_path, tmp_path)) == []
