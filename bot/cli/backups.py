"""`heed backup` and `heed restore`: everything heed keeps, as one zip file, and back again.

Both work on the data directory itself, whether a heed runs there or not. Owns what a person reads about it; what is in
a backup belongs to `storage.backup.create`.
"""

import contextlib
import signal
from collections.abc import Iterator
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import Annotated

import typer
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn
from rich.text import Text

from bot.cli.console import console, ending, settings
from bot.config import Settings

SUFFIX = ".zip"
MIB = 1024**2

commands = typer.Typer()


@commands.command()
def backup(
    target: Annotated[
        Path, typer.Argument(help="The zip file to write, or a folder for one that is named after the time.")
    ] = Path(),
    to_verify: Annotated[
        Path | None, typer.Option("--verify", metavar="FILE", help="Write nothing: check this backup to the last byte.")
    ] = None,
) -> None:
    """Write a backup of everything heed keeps, also while it runs: database and adapters, as one zip file.

    The file holds what people said, is readable by you alone, and is not erased with a person: keep it as you keep the
    data directory. Settings are not in it. Exit code 1: the backup is good, but adapters were missing or damaged.
    """
    with _interruptible(), ending():
        missing = _verify(to_verify) if to_verify else _write(settings(), _file(target))
    raise typer.Exit(1 if missing else 0)


@commands.command()
def restore(
    backup: Annotated[Path, typer.Argument(help="A file that `heed backup` wrote.", metavar="BACKUP")],
) -> None:
    """Make the data directory (HEED_DATA_DIR) out of a backup; it must be empty or not there yet.

    All of the backup is checked before anything is at its place; what is refused leaves nothing behind.
    """
    chosen = settings()
    with _interruptible(), ending():
        from storage.backup import restore as restoring

        _require_default_place(chosen)
        with _progress("restoring") as progress:
            found = restoring.restore(backup, chosen.data_dir, progress)
    console.print(Text(f"{chosen.data_dir} is as it was at {found.created_at}; start it with `heed run`"))
    _say_missing(found.missing)


def _write(chosen: Settings, target: Path) -> tuple[str, ...]:
    from storage import database
    from storage.backup import create as backing_up

    source = database.file_of(chosen.data_dir, chosen.database_url)
    with _progress("backing up") as progress:
        written = backing_up.write(source, chosen.data_dir, target, _heed_version(), progress)
    size = f"{target.stat().st_size / MIB:.1f} MiB"
    console.print(Text(f"{target}: the database, {_versions(written.num_versions)}, {size}"), soft_wrap=True)
    _say_missing(written.missing)
    return written.missing


def _verify(path: Path) -> tuple[str, ...]:
    from storage.backup import restore as restoring

    with _progress("checking") as progress:
        found = restoring.verify(path, progress)
    made = f"made at {found.created_at} by heed {found.heed_version}, schema {found.schema_revision}"
    console.print(Text(f"{path} is whole: {made}, {_versions(found.num_versions)}"), soft_wrap=True)
    _say_missing(found.missing)
    return found.missing


def _require_default_place(chosen: Settings) -> None:
    """Raise DatabaseElsewhere if heed would not open what is restored."""
    from storage import database
    from storage.errors import DatabaseElsewhere

    if database.file_of(chosen.data_dir, chosen.database_url) != database.file_of(chosen.data_dir):
        raise DatabaseElsewhere("HEED_DATABASE_URL names a database outside the data directory")


def _say_missing(missing: tuple[str, ...]) -> None:
    for path in missing:
        words = f"not in it: {path} was missing or damaged; heed answers with the version before it"
        console.print(Text(words, style="bold red"), soft_wrap=True)


def _versions(number: int) -> str:
    return f"{number} adapter version{'' if number == 1 else 's'}"


def _file(target: Path) -> Path:
    if target.suffix == SUFFIX and not target.is_dir():
        return target
    return target / f"heed-{datetime.now(UTC):%Y%m%d-%H%M%SZ}{SUFFIX}"


def _heed_version() -> str:
    try:
        return metadata.version("heed")
    except metadata.PackageNotFoundError:
        return "unknown"


@contextlib.contextmanager
def _interruptible() -> Iterator[None]:
    """SIGTERM ends the block as Ctrl-C does, so that what it wrote so far is removed."""
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


class _Bar:
    """A bar in a terminal, and nothing where there is none."""

    def __init__(self, progress: Progress, what: str) -> None:
        self._progress = progress
        self._task = progress.add_task(what, total=None)

    def __call__(self, done_bytes: int, size_bytes: int) -> None:
        self._progress.update(self._task, completed=done_bytes, total=size_bytes)


@contextlib.contextmanager
def _progress(what: str) -> Iterator[_Bar]:
    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn())
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress:
        yield _Bar(progress, what)
