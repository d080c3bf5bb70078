"""The frame of a measuring command."""

import asyncio
import json
import os
import signal
from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console
from rich.progress import Progress

from evals import command
from evals.config import EvalConfig
from evals.errors import HeedUnreachable, StartFailed


async def seven(config: EvalConfig, console: Console) -> int:
    """Some work that ends with 7."""
    console.print(f"seeds {config.seeds}")
    return 7


def test_the_works_exit_code_is_the_commands(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The folder for results is there before the work begins."""
    out = tmp_path / "a" / "b"
    assert command.execute("heed eval", EvalConfig, [f"out={out}", "seeds=2"], seven) == 7
    assert out.is_dir()
    assert capsys.readouterr().out == "seeds 2\n"


@pytest.mark.parametrize("word", ["help", "--help", "-h"])
def test_help_prints_the_keys_and_does_nothing(word: str, capsys: pytest.CaptureFixture[str]) -> None:
    """No work is done for it."""
    assert command.execute("heed eval", EvalConfig, [word], seven) == 0
    printed = capsys.readouterr().out
    assert "usage: heed eval [key=value ...]" in printed
    assert "seeds=5" in printed


def test_a_wrong_argument_is_one_line_and_2(capsys: pytest.CaptureFixture[str]) -> None:
    """On standard error, naming the command and the key."""
    assert command.execute("heed eval", EvalConfig, ["seeds=none"], seven) == 2
    assert capsys.readouterr().err == "heed eval: seeds wants a whole number, not 'none'\n"


@pytest.mark.parametrize("error", [StartFailed("it [did] not start"), HeedUnreachable("gone"), PermissionError("no")])
def test_what_cannot_be_measured_is_one_line_and_2(
    error: Exception, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Errors of ours and of the disk end the same way; brackets in them are not markup."""

    async def fails(_: EvalConfig, __: Console) -> int:
        raise error

    assert command.execute("heed eval", EvalConfig, [f"out={tmp_path}"], fails) == 2
    assert capsys.readouterr().err == f"heed eval: {error}\n"


def test_sigterm_ends_the_work_in_order(tmp_path: Path) -> None:
    """Resources that the work opened are closed before the command ends."""
    closed = []

    async def waits(_: EvalConfig, __: Console) -> int:
        os.kill(os.getpid(), signal.SIGTERM)
        try:
            await asyncio.sleep(60)
        finally:
            closed.append(True)
        return 0

    assert command.execute("heed eval", EvalConfig, [f"out={tmp_path}"], waits) == 130
    assert closed == [True]


def test_the_bar_counts_units_and_names_the_part() -> None:
    """One call, one unit."""
    progress = Progress(disable=True)
    bar = command.Bar(progress, 3)
    bar("notes")
    bar("notes")
    task = progress.tasks[0]
    assert (task.completed, task.total, task.description) == (2, 3, "notes")


def test_a_log_gets_a_line_now_and_then(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a terminal, a line gives the part, its progress and its time."""
    monkeypatch.setattr(command, "LINE_EVERY_S", 0.0)
    stream = StringIO()
    bar = command.Bar(Progress(console=Console(file=stream)), 3)
    bar("poison")
    assert stream.getvalue().startswith("poison: 1 of 3, 0:00:00")


def test_a_pipe_gets_the_tables_at_full_width() -> None:
    """Tables in a pipe are not cut to eighty columns."""
    assert command.wide_console().width == command.TABLE_WIDTH


def test_reports_are_readable_json(tmp_path: Path) -> None:
    """Written as text, with emoji as they are."""
    command.write_json(tmp_path / "r.json", {"text": "🐾"})
    assert "🐾" in (tmp_path / "r.json").read_text()
    assert json.loads((tmp_path / "r.json").read_text()) == {"text": "🐾"}
