"""The terminal that a command writes to, and how a command ends.

Owns exit codes and the one line a person reads when something is wrong: 2 where heed cannot do what was asked, 1 where
it did and the answer is bad news, 130 where it was interrupted.
"""

import asyncio
import contextlib
import sys
from collections.abc import Coroutine, Iterator
from typing import Annotated, Any, NoReturn, TypeVar

import typer
from rich.console import Console
from rich.text import Text

from bot import config
from bot.config import Settings
from bot.errors import BotError
from engine.errors import EngineError
from storage.errors import StorageError

T = TypeVar("T")

WithTerminal = Annotated[
    bool, typer.Option("--terminal/--no-terminal", help="A chat in this terminal too, where there is one.")
]

console = Console(highlight=False)


def is_terminal() -> bool:
    """Return True where a person types what a command reads and sees what it writes."""
    return sys.stdin.isatty() and sys.stdout.isatty()


def settings() -> Settings:
    """heed's settings; ends the command where they are wrong."""
    try:
        return config.load()
    except BotError as error:
        fail(error)


def guarded(work: Coroutine[Any, Any, T]) -> T:
    """Blocking: what comes of some work; ends the command where `ending` does."""
    with ending():
        return asyncio.run(work)


@contextlib.contextmanager
def ending() -> Iterator[None]:
    """End the command where the block fails in a way that heed has a name for, or is interrupted."""
    try:
        yield
    except (BotError, EngineError, StorageError) as error:
        fail(error)
    except (KeyboardInterrupt, asyncio.CancelledError):
        raise typer.Exit(130) from None


def fail(error: Exception) -> NoReturn:
    """End the command with one line on stderr."""
    line = " ".join(str(error).split())
    Console(stderr=True, highlight=False).print(Text(f"heed: {line}"), soft_wrap=True)
    raise typer.Exit(2) from None
