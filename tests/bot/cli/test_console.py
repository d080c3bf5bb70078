"""bot.cli.console: how commands end."""

import asyncio
from types import SimpleNamespace

import pytest
import typer

from bot.cli import console
from bot.errors import BotError
from storage.errors import DatabaseMissing


async def failing(error: BaseException) -> None:
    """Some work."""
    raise error


@pytest.mark.parametrize(
    ("error", "code"),
    [(BotError("no"), 2), (DatabaseMissing("no"), 2), (KeyboardInterrupt(), 130), (asyncio.CancelledError(), 130)],
)
def test_what_has_a_name_ends_the_command(error: BaseException, code: int) -> None:
    """With the exit code of its kind."""
    with pytest.raises(typer.Exit) as ended:
        console.guarded(failing(error))
    assert ended.value.exit_code == code


def test_what_has_none_is_a_fault_of_ours() -> None:
    """It is not made into a line."""
    with pytest.raises(ZeroDivisionError):
        console.guarded(failing(ZeroDivisionError()))


def test_an_error_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    """However many it had."""
    with pytest.raises(typer.Exit):
        console.fail(BotError("first\n  second"))
    assert capsys.readouterr().err == "heed: first second\n"


def test_wrong_settings_end_the_command(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """Whichever command it is."""
    monkeypatch.setenv("HEED_HTTP_PORT", "abc")
    with pytest.raises(typer.Exit):
        console.settings()
    assert "HEED_HTTP_PORT" in capsys.readouterr().err


@pytest.mark.parametrize(("types", "reads"), [(True, True), (True, False), (False, True)])
def test_a_terminal_is_typed_in_and_read(monkeypatch: pytest.MonkeyPatch, *, types: bool, reads: bool) -> None:
    """A command whose words are piped in, or away, talks to no person."""
    monkeypatch.setattr("sys.stdin", SimpleNamespace(isatty=lambda: types))
    monkeypatch.setattr("sys.stdout", SimpleNamespace(isatty=lambda: reads))
    assert console.is_terminal() is (types and reads)
