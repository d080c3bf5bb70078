"""The frame of a measuring command: help, arguments, exit codes, an end in order. Shared with `heed bench`.

Exit codes: what the work returns (0, or 1 where check=true and a figure misses), 2 where it could not measure.
"""

import asyncio
import json
import signal
import time
from collections.abc import Awaitable, Callable, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any, Protocol, TypeVar

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from evals import arguments
from evals.errors import EvalError

HELP_WORDS = ("help", "--help", "-h")
TABLE_WIDTH = 150
LINE_EVERY_S = 30.0


class HasFolder(Protocol):
    """Arguments that name a folder for results."""

    @property
    def out(self) -> str:
        """The folder."""


C = TypeVar("C", bound=HasFolder)


def execute(
    program: str,
    kind: type[C],
    words: Sequence[str],
    work: Callable[[C, Console], Awaitable[int]],
    *,
    is_killed: bool = False,
) -> int:
    """Blocking: parses `words` as a `kind`, makes its folder, does the work; returns the exit code.

    SIGTERM ends the work in order. Work that has started nothing may be killed instead: a thread that computes would
    be waited for.
    """
    console = wide_console()
    if any(word in HELP_WORDS for word in words):
        console.print(arguments.usage(kind, program), markup=False, soft_wrap=True)
        return 0
    try:
        config = arguments.parse(kind, words)
        Path(config.out).mkdir(parents=True, exist_ok=True)
        return asyncio.run(_ending_on_sigterm(work(config, console), is_killed=is_killed))
    except (EvalError, OSError) as error:
        Console(stderr=True, highlight=False).print(f"{program}: {error}", style="red", markup=False, soft_wrap=True)
        return 2
    except (KeyboardInterrupt, asyncio.CancelledError):
        return 130


def wide_console() -> Console:
    """Return where the tables go: a file or a pipe gets them at full width."""
    console = Console(highlight=False)
    return console if console.is_terminal else Console(highlight=False, width=TABLE_WIDTH)


def progress_bar() -> Progress:
    """Return the progress bar, on standard error."""
    return Progress(
        TextColumn("{task.description:<14}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
        console=Console(stderr=True),
    )


class Bar:
    """Moves a progress bar; called once per unit of work with the part's name.

    Where no one watches a terminal, a line says now and then how far it is.
    """

    def __init__(self, progress: Progress, total: int) -> None:
        self._progress = progress
        self._task = progress.add_task("starting heed", total=total)
        self._told_s = time.monotonic()

    def __call__(self, part: str) -> None:
        """One unit further."""
        self._progress.update(self._task, advance=1, description=part)
        console = self._progress.console
        if not console.is_terminal and time.monotonic() - self._told_s >= LINE_EVERY_S:
            self._told_s = time.monotonic()
            console.print(self._line(part))

    def _line(self, part: str) -> str:
        task = self._progress.tasks[self._task]
        left = "" if task.time_remaining is None else f", about {timedelta(seconds=int(task.time_remaining))} left"
        return f"{part}: {task.completed:.0f} of {task.total:.0f}, {timedelta(seconds=int(task.elapsed or 0))}{left}"


def write_json(path: Path, data: Any) -> None:
    """Write a report."""
    path.write_text(json.dumps(data, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")


async def _ending_on_sigterm(work: Awaitable[int], *, is_killed: bool) -> int:
    """SIGTERM ends the work as Ctrl-C does, so that the heed it started is stopped; or kills it, if there is none."""
    task = asyncio.current_task()
    assert task is not None
    if not is_killed:
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)
    return await work
