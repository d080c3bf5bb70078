"""The virtual environment, made for real with Python's own venv and pip, from wheels made here."""

import shutil
import sys
import zipfile
from dataclasses import replace
from pathlib import Path

import pytest

from tools import machine
from tools.environment import Environment
from tools.errors import NothingFoundError, SetupError
from tools.progress import Progress

DIGESTS = {"cpu.txt": "1", "pyproject.toml": "2"}


def make_wheel(folder: Path, name: str) -> Path:
    """A wheel with one empty module."""
    path = folder / f"{name}-1.0-py3-none-any.whl"
    info = f"{name}-1.0.dist-info"
    with zipfile.ZipFile(path, "w") as wheel:
        wheel.writestr(f"{name}.py", "")
        wheel.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
        wheel.writestr(
            f"{info}/WHEEL", "Wheel-Version: 1.0\nGenerator: heed\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        )
        wheel.writestr(f"{info}/RECORD", f"{name}.py,,\n{info}/METADATA,,\n{info}/WHEEL,,\n{info}/RECORD,,\n")
    return path


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Environment:
    """An environment made once for this module."""
    environment = Environment(tmp_path_factory.mktemp("heed"), Progress())
    with pytest.MonkeyPatch.context() as monkeypatch:
        monkeypatch.setattr("tools.environment.check_disk", lambda *_: None)
        environment.prepare("cpu")
    return environment


@pytest.fixture
def roomy(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine with enough disk for anything."""
    monkeypatch.setattr("tools.environment.check_disk", lambda *_: None)


def test_the_environment_has_the_python_that_made_it(made: Environment) -> None:
    """The interpreter in .venv runs and packages go below its own version."""
    assert made.python.exists()
    assert made.site_packages.parent.name == f"python3.{sys.version_info.minor}"


def test_a_working_environment_is_kept(made: Environment, roomy: None) -> None:
    """Preparing again leaves everything in it."""
    marker = made.folder / "marker"
    marker.touch()
    made.prepare("cpu")
    assert marker.exists()


def test_a_wheel_is_installed_and_logged(made: Environment, tmp_path: Path) -> None:
    """pip installs what it is given, and what it printed is in the log."""
    made.pip_install("a test", 1, "--no-index", str(make_wheel(tmp_path, "heed_test_wheel")))
    assert (made.site_packages / "heed_test_wheel.py").exists()
    assert "Successfully installed heed" in made.log.read_text(encoding="utf-8")


def test_a_package_that_no_index_has_is_its_own_error(made: Environment) -> None:
    """Set-up can tell "not there" from every other failure, since then it looks elsewhere."""
    with pytest.raises(NothingFoundError, match="check the network"):
        made.pip_install("a test", 1, "--no-index", "heed-is-on-no-index==1.0")


def test_another_failure_names_the_log(made: Environment, tmp_path: Path) -> None:
    """A broken file is reported in one line that names the log."""
    broken = tmp_path / "broken-1.0-py3-none-any.whl"
    broken.write_bytes(b"not a zip")
    with pytest.raises(SetupError, match=r"heed-setup\.log") as raised:
        made.pip_install("a test", 1, "--no-index", str(broken))
    assert "\n" not in str(raised.value)


def test_the_stamp_says_what_is_there(made: Environment) -> None:
    """With its stamp the environment is current for these locks and for fewer, not for others or another build."""
    made.write_stamp("cpu", DIGESTS)
    assert made.is_current("cpu", DIGESTS)
    assert made.is_current("cpu", {"cpu.txt": "1"})
    assert not made.is_current("cpu", {**DIGESTS, "dev.txt": "3"})
    assert not made.is_current("cpu", {"cpu.txt": "changed"})
    assert not made.is_current("gpu", DIGESTS)


def test_a_broken_stamp_is_no_stamp(made: Environment) -> None:
    """A stamp that cannot be read means that set-up runs."""
    made.stamp.write_text("{", encoding="utf-8")
    assert not made.is_current("cpu", DIGESTS)


def test_a_moved_environment_is_not_current(made: Environment, tmp_path: Path) -> None:
    """Scripts name their interpreter by its full path, so a copy in another place counts for nothing."""
    made.write_stamp("cpu", DIGESTS)
    shutil.copytree(made.folder, tmp_path / ".venv", symlinks=True)
    assert not replace(made, root=tmp_path).is_current("cpu", DIGESTS)


@pytest.mark.usefixtures("roomy")
def test_the_other_build_of_vllm_means_starting_anew(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """If .venv holds vLLM for GPUs and the CPU build is wanted, .venv is made again: both own the folder vllm."""
    environment = Environment(tmp_path, Progress())
    other = tmp_path / ".venv/lib/python3.11/site-packages/vllm-0.32.0.dist-info"
    other.mkdir(parents=True)
    environment.prepare("cpu")
    assert not other.exists()
    assert environment.python.exists()
    assert "removing" in capsys.readouterr().out


def test_a_new_environment_needs_room(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The disk is checked before anything is made."""
    monkeypatch.setitem(machine.DISK_NEEDED_GB, "cpu", 10**9)  # type: ignore[arg-type]
    with pytest.raises(SetupError, match="free disk needed"):
        Environment(tmp_path, Progress()).prepare("cpu")
    assert list(tmp_path.iterdir()) == []
