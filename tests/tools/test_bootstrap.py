"""Finding a Python that will do, on machines with all kinds of them."""

import ast
import platform
import sys
from pathlib import Path

import pytest

from tests.tools.commands import make_command
from tools import bootstrap
from tools.bootstrap import Unsuitable


@pytest.fixture
def bare_machine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A machine whose `python3` is 3.9, without anything else; returns the one folder on PATH."""
    folder = tmp_path / "bin"
    monkeypatch.setattr(sys, "executable", str(make_command(folder, "python3", "echo 3 9 1")))
    monkeypatch.setenv("PATH", str(folder))
    monkeypatch.setenv("PYENV_ROOT", str(tmp_path / "pyenv"))
    return folder


def test_an_old_python_can_read_it() -> None:
    """bootstrap.py is valid Python 3.6, so an old `python3` prints the remedy and no syntax error."""
    ast.parse(Path(bootstrap.__file__).read_text(encoding="utf-8"), feature_version=(3, 6))


@pytest.mark.parametrize(
    ("system", "machine", "libc"),
    [("Darwin", "arm64", ""), ("Linux", "aarch64", "glibc"), ("Windows", "AMD64", ""), ("Linux", "x86_64", "")],
)
def test_other_platforms_are_told_what_to_do(system: str, machine: str, libc: str) -> None:
    """Anything but Linux on x86-64 with glibc is refused, with Docker as the way out."""
    with pytest.raises(Unsuitable, match="docker compose up"):
        bootstrap.check_machine(system, machine, libc)


def test_this_platform_will_do() -> None:
    """Linux on x86-64 with glibc passes."""
    bootstrap.check_machine("Linux", "x86_64", "glibc")


def test_the_python_running_this_will_do() -> None:
    """The interpreter of the tests is supported and can make virtual environments, so it is taken as it is."""
    assert bootstrap.probe(sys.executable) == (*sys.version_info[:2], True)
    assert bootstrap.find_python() == sys.executable


def test_a_shim_without_its_version_is_passed_over(bare_machine: Path) -> None:
    """A pyenv shim that exists but does not run is skipped, and the next version on PATH is taken."""
    make_command(bare_machine, "python3.11", "echo 'pyenv: python3.11: command not found' >&2; exit 127")
    good = make_command(bare_machine, "python3.12", "echo 3 12 1")
    assert bootstrap.find_python() == str(good)


def test_a_later_folder_on_path_is_looked_at(
    bare_machine: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Behind a broken shim the same version further down PATH is found."""
    make_command(bare_machine, "python3.11", "exit 127")
    good = make_command(tmp_path / "usr-bin", "python3.11", "echo 3 11 1")
    monkeypatch.setenv("PATH", f"{bare_machine}:{tmp_path / 'usr-bin'}")
    assert bootstrap.find_python() == str(good)


def test_pyenv_versions_are_found_newest_first(bare_machine: Path, tmp_path: Path) -> None:
    """With nothing on PATH the newest patch release that pyenv has built is taken: 3.11.10 before 3.11.9."""
    for version in ("3.11.9", "3.11.10"):
        make_command(tmp_path / "pyenv" / "versions" / version / "bin", "python", "echo 3 11 1")
    assert bootstrap.find_python() == str(tmp_path / "pyenv/versions/3.11.10/bin/python")


def test_a_python_without_venv_names_the_package_to_install(bare_machine: Path) -> None:
    """If the only supported Python lacks its venv module, the message names Debian's package."""
    make_command(bare_machine, "python3.11", "echo 3 11 0")
    with pytest.raises(Unsuitable, match=r"apt install python3\.11-venv"):
        bootstrap.find_python()


def test_without_any_supported_python_the_versions_are_named(bare_machine: Path) -> None:
    """If no interpreter will do, the message says which versions would."""
    with pytest.raises(Unsuitable, match=r"needs Python 3\.11, 3\.12 or 3\.13"):
        bootstrap.find_python()


def test_a_refusal_is_one_line_and_exit_code_2(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """On an unsupported machine the program prints one line and ends with 2."""
    monkeypatch.setattr(platform, "system", lambda: "Darwin")
    with pytest.raises(SystemExit) as ended:
        bootstrap.main()
    assert ended.value.code == 2
    assert capsys.readouterr().err.count("\n") == 1
