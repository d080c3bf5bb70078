"""Set-up inspects the machine and names missing packages."""

import shutil
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.tools.commands import make_command
from tools import machine
from tools.errors import SetupError


@pytest.fixture
def empty_path(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A PATH with one empty folder, which is returned."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", str(folder))
    return folder


@pytest.fixture
def no_driver(tmp_path: Path) -> dict[str, Path]:
    """Empty stand-ins for /proc/driver/nvidia/gpus and /dev."""
    folders = {"proc": tmp_path / "gpus", "dev": tmp_path / "dev"}
    for folder in folders.values():
        folder.mkdir()
    return folders


def test_no_driver_means_no_gpu(empty_path: Path, no_driver: dict[str, Path]) -> None:
    """Without nvidia-smi and without the driver's folder there is no GPU."""
    assert not machine.has_nvidia_gpu(**no_driver)


def test_nvidia_smi_that_lists_a_gpu_is_believed(empty_path: Path, no_driver: dict[str, Path]) -> None:
    """`nvidia-smi -L` naming a GPU is enough."""
    make_command(empty_path, "nvidia-smi", 'echo "GPU 0: NVIDIA H200 (UUID: GPU-1)"')
    assert machine.has_nvidia_gpu(**no_driver)


def test_nvidia_smi_that_fails_is_not(empty_path: Path, no_driver: dict[str, Path]) -> None:
    """nvidia-smi without a driver to talk to does not make a GPU."""
    make_command(empty_path, "nvidia-smi", "echo 'NVIDIA-SMI has failed because GPU 0 ...'; exit 9")
    assert not machine.has_nvidia_gpu(**no_driver)


def test_the_driver_counts_only_with_its_device_file(empty_path: Path, no_driver: dict[str, Path]) -> None:
    """A container sees the host's driver folder; only with /dev/nvidia0 can it use the GPU."""
    (no_driver["proc"] / "0000:01:00.0").mkdir()
    assert not machine.has_nvidia_gpu(**no_driver)
    (no_driver["dev"] / "nvidia0").touch()
    assert machine.has_nvidia_gpu(**no_driver)


def test_a_folder_that_cannot_be_written_is_named() -> None:
    """A read-only place is refused with its path."""
    with pytest.raises(SetupError, match="cannot write to /proc"):
        machine.check_folder(Path("/proc"))


def test_a_full_disk_is_refused_with_both_figures(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Less room than the packages need is said with what is needed and what there is."""
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=7_000_000_000))
    machine.check_disk(tmp_path, "cpu")
    with pytest.raises(SetupError, match=r"15 GB free disk needed at .*, 7\.0 GB there"):
        machine.check_disk(tmp_path, "gpu")


def test_a_processor_without_avx2_is_refused(tmp_path: Path) -> None:
    """vLLM's CPU kernels need AVX2; `avx` alone is not enough."""
    cpuinfo = tmp_path / "cpuinfo"
    cpuinfo.write_text("flags : sse4_2 avx avx2 fma\n", encoding="utf-8")
    machine.check_processor(cpuinfo)
    cpuinfo.write_text("flags : sse4_2 avx\n", encoding="utf-8")
    with pytest.raises(SetupError, match="AVX2"):
        machine.check_processor(cpuinfo)


def test_a_missing_libnuma_names_its_package(empty_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """If libnuma is missing and cannot be installed, the message names Debian's package."""
    monkeypatch.setattr(machine, "does_load", lambda _: False)
    with pytest.raises(SetupError, match="apt install libnuma1"):
        machine.check_libnuma()


def test_tcmalloc_is_offered_and_not_needed(
    empty_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Where it cannot be installed a line says what it is good for; where it is there, nothing is said."""
    monkeypatch.setattr(machine, "find_library", lambda _name: None)
    machine.offer_tcmalloc()
    assert "apt install libtcmalloc-minimal4" in capsys.readouterr().out
    monkeypatch.setattr(machine, "find_library", lambda _name: "libtcmalloc_minimal.so.4")
    machine.offer_tcmalloc()
    assert capsys.readouterr().out == ""


def test_a_library_that_is_not_there_does_not_load() -> None:
    """The loader is asked for real."""
    assert machine.does_load("libc.so.6")
    assert not machine.does_load("libheed-is-no-library.so.1")
