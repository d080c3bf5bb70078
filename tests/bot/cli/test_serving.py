"""bot.cli.serving: what a start says, and what Ctrl-C ends beside a terminal chat."""

import io
import re

import pytest
from rich.console import Console

from bot.cli import serving, terminal
from bot.config import Settings
from tests.bot.cli.test_terminal import KeyedLines, shown
from tests.bot.test_app import model, running, settings

__all__ = ["model", "settings"]


def test_a_line_says_how_long_the_start_has_taken(screen: Console) -> None:
    """In seconds since it began."""
    serving.progress()("loading the model")
    assert re.fullmatch(r"\[ +0\.\d s\] loading the model\n", shown(screen))


@pytest.fixture
def screen(monkeypatch: pytest.MonkeyPatch) -> Console:
    """The terminal that `heed run` writes to."""
    console = Console(file=io.StringIO(), width=200)
    monkeypatch.setattr(serving, "console", console)
    return console


async def test_the_chat_beside_heed_asks_before_it_ends_heed(
    settings: Settings, screen: Console, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is everyone's heed: anything but yes goes on."""
    monkeypatch.setattr(terminal, "PromptLines", lambda: KeyedLines("/quit", "no", "/quit", "y"))
    async with running(settings) as started:
        await serving.Interrupt(started.app).chat(started.app)
    assert shown(screen).count(serving.END_HEED) == 2


async def test_ctrl_c_beside_the_chat_ends_heed_only_twice(
    settings: Settings, screen: Console, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first one says what the second one does; without a chat one is enough."""
    monkeypatch.setattr(terminal, "PromptLines", lambda: KeyedLines("/quit", "y"))
    async with running(settings) as started:
        interrupt = serving.Interrupt(started.app)
        await interrupt.chat(started.app)
        interrupt._interrupt()
        assert (started.app.stopping.is_set(), serving.ONCE_MORE in shown(screen)) == (False, True)
        interrupt._interrupt()
        assert started.app.stopping.is_set()
    async with running(settings) as started:
        serving.Interrupt(started.app)._interrupt()
        assert started.app.stopping.is_set()
