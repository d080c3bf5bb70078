"""calibrate: starts the model by itself, says what it measures, and needs the data directory for itself."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from bot import app
from bot.cli.main import cli
from storage.files.lock import DataDirectoryLock
from tests.storage.new_data_dir import copy_to

Progress = Callable[[str], None]


class Calibrating:
    """An engine that can do nothing else; notes what was asked of it."""

    asked: list[str] = []  # noqa: RUF012  one engine a test

    def __init__(self, config: Any, _database: Any) -> None:
        self._data_dir: Path = config.data_dir

    async def start(self, progress: Progress) -> None:
        """Come up."""
        self.asked.append("start")
        progress("warming up")

    async def calibrate(self, progress: Progress) -> Path:
        """Measure."""
        self.asked.append("calibrate")
        progress("the rate is 0.001")
        return self._data_dir / "calibration" / "made.json"

    async def stop(self) -> None:
        """End."""
        self.asked.append("stop")


@pytest.fixture
def data_dir(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The data directory of the settings, and an engine that only calibrates."""
    copy_to(tmp_path / "data")
    monkeypatch.setenv("HEED_DATA_DIR", str(tmp_path / "data"))
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.setattr(app, "build_engine", Calibrating)
    Calibrating.asked.clear()
    return tmp_path / "data"


def run() -> Result:
    """Run `heed calibrate`."""
    return CliRunner().invoke(cli, ["calibrate"])


def test_it_says_what_it_does_and_where_the_result_is(data_dir: Path) -> None:
    """The engine is stopped at the end, and the data directory is free again."""
    done = run()
    assert done.exit_code == 0, done.output
    assert Calibrating.asked == ["start", "calibrate", "stop"]
    assert "the rate is 0.001" in done.output
    assert str(data_dir / "calibration" / "made.json") in done.output.replace("\n", "")
    with DataDirectoryLock(data_dir):
        pass


def test_a_running_heed_keeps_its_data_directory(data_dir: Path) -> None:
    """Nothing is started then."""
    with DataDirectoryLock(data_dir):
        done = run()
    assert done.exit_code != 0
    assert Calibrating.asked == []


def test_a_failure_stops_the_engine(data_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """And frees the data directory."""

    async def failing(_self: Calibrating, _progress: Progress) -> Path:
        raise OSError("no room")

    monkeypatch.setattr(Calibrating, "calibrate", failing)
    assert run().exit_code != 0
    assert Calibrating.asked == ["start", "stop"]
    with DataDirectoryLock(data_dir):
        pass
