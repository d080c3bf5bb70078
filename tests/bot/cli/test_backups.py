"""backups: what a person reads, and the exit codes. What is in a backup: tests/storage/backup/test_create.py."""

import asyncio
import os
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import Result
from typer.testing import CliRunner

from bot.cli.main import cli
from storage.database import Database
from storage.people import people
from tests.bot.cli.test_main import ROOT, heed_command
from tests.patience import PATIENCE_S
from tests.storage.new_data_dir import copy_to
from tests.storage.taught import teach


def heed(*arguments: str | Path) -> Result:
    """A command that needs no running heed."""
    return CliRunner().invoke(cli, [str(argument) for argument in arguments])


@pytest.fixture
def data_dir(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The data directory of the settings, with one version in it."""
    data_dir = tmp_path / "data"
    copy_to(data_dir)
    monkeypatch.setenv("HEED_DATA_DIR", str(data_dir))
    monkeypatch.setenv("COLUMNS", "200")
    asyncio.run(_fill(data_dir))
    return data_dir


async def _fill(data_dir: Path) -> None:
    database = Database.open(data_dir)
    ana = (await database.write(lambda s: people.resolve(s, "http", "ana"))).id
    await teach(database, data_dir, ana, b"hers")
    await database.close()


def contents(folder: Path) -> dict[Path, bytes]:
    """Every file below a folder."""
    return {path.relative_to(folder): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_there_and_back(data_dir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Written, checked, restored into another directory: each with a line that says what was done."""
    file = tmp_path / "backup.zip"
    written = heed("backup", file)
    assert (written.exit_code, written.stderr) == (0, "")
    assert re.fullmatch(rf"{file}: the database, 1 adapter version, \d\.\d MiB\n", written.stdout)
    checked = heed("backup", "--verify", file)
    assert (checked.exit_code, f"{file} is whole: made at 20" in checked.stdout) == (0, True)
    monkeypatch.setenv("HEED_DATA_DIR", str(tmp_path / "other"))
    restored = heed("restore", file)
    assert (restored.exit_code, "start it with `heed run`" in restored.stdout) == (0, True)
    held = [contents(place / "adapters") for place in (data_dir, tmp_path / "other")]
    assert held[0] == held[1] != {}


def test_a_folder_gets_a_file_named_after_the_time(data_dir: Path, tmp_path: Path) -> None:
    """Also one that is not there yet."""
    assert heed("backup", tmp_path / "safe" / "place").exit_code == 0
    assert re.fullmatch(r"heed-\d{8}-\d{6}Z\.zip", next((tmp_path / "safe" / "place").iterdir()).name)


def test_what_is_missing_is_said(data_dir: Path, tmp_path: Path) -> None:
    """The backup is there, and the exit code is that of bad news."""
    version = next((data_dir / "adapters").glob("*/*"))
    shutil.rmtree(version)
    written = heed("backup", tmp_path / "backup.zip")
    words = f"not in it: {version.relative_to(data_dir)} was missing or damaged"
    assert (written.exit_code, words in written.stdout) == (1, True)
    assert heed("backup", "--verify", tmp_path / "backup.zip").exit_code == 1


def test_refusals_are_one_line(data_dir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Exit code 2 and what to do, for each way in which it cannot be done."""
    file = tmp_path / "backup.zip"
    assert heed("backup", file).exit_code == 0
    (tmp_path / "text.zip").write_text("hello")
    cases = [
        (["backup", file], "exists already"),
        (["restore", file], "HEED_DATA_DIR"),
        (["restore", tmp_path / "nothing.zip"], "cannot be read"),
        (["backup", "--verify", tmp_path / "text.zip"], "cannot be read as a backup"),
    ]
    for arguments, words in cases:
        refused = heed(*arguments)
        assert (refused.exit_code, len(refused.stderr.splitlines()), words in refused.stderr) == (2, 1, True), words
    monkeypatch.setenv("HEED_DATA_DIR", str(tmp_path / "never used"))
    assert "nothing to back up" in heed("backup", tmp_path / "other.zip").stderr


@pytest.mark.parametrize("command", ["backup", "restore"])
def test_another_database_is_refused_by_name(
    data_dir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    """PostgreSQL has its own tool, which the line names; the password is not shown."""
    monkeypatch.setenv("HEED_DATABASE_URL", "postgresql://heed:secret@127.0.0.1/heed")
    refused = heed(command, tmp_path / "backup.zip")
    assert (refused.exit_code, "pg_dump" in refused.stderr, "secret" in refused.stderr) == (2, True, False)
    monkeypatch.setenv("HEED_DATABASE_URL", f"sqlite:///{tmp_path / 'elsewhere.db'}")
    assert heed("restore", tmp_path / "backup.zip").exit_code == 2


async def test_it_works_as_a_process(data_dir: Path, tmp_path: Path) -> None:
    """In a folder of one's own, without a target: no bar where there is no terminal."""
    done = await heed_command("backup", cwd=tmp_path, HEED_DATA_DIR=str(data_dir))
    assert (done.returncode, done.stderr, len(done.stdout.splitlines())) == (0, "", 1)
    assert len([*tmp_path.glob("heed-*.zip")]) == 1  # noqa: ASYNC240  a test may wait for its own directory


SLOW = """
import signal, sys, time
from storage.backup import create
signal.signal(signal.SIGINT, signal.default_int_handler)  # of tests that run in the background it is ignored
def pack(file, taken, *_):
    file.write(b"part of it")
    print("half way", flush=True)
    time.sleep(600)
create._pack = pack
from bot.cli.main import main
main()
"""


@pytest.mark.parametrize("with_signal", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_one_leaves_nothing(data_dir: Path, tmp_path: Path, with_signal: signal.Signals) -> None:
    """Neither a part of the file nor what it was made from."""
    target = tmp_path / "target"
    process = subprocess.Popen(
        [sys.executable, "-c", SLOW, "backup", str(target)],
        cwd=tmp_path, env={**os.environ, "PYTHONPATH": str(ROOT)}, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert process.stdout is not None
    assert process.stdout.readline() == "half way\n"
    process.send_signal(with_signal)
    assert process.wait(PATIENCE_S) == 130
    process.stdout.close()
    assert [*target.iterdir(), *(data_dir / "backups").iterdir()] == []
