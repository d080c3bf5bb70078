"""kill -9 at random moments: what was acknowledged is there, and what is there is whole."""

import asyncio
import multiprocessing
import os
import random
import time
from collections.abc import Callable
from multiprocessing.context import ForkServerContext
from pathlib import Path

import pytest

from storage.database import Database
from storage.errors import RowNotFound
from storage.files import atomic
from storage.kinds import VersionState
from storage.learning import feedback, versions
from storage.people import people
from tests.storage import crash_worker
from tests.storage.stored import directory_sha256

pytestmark = pytest.mark.crash
Writing = Callable[[str, str | None, int], None]
NUM_KILLS = 10
TRIES = 40  # of the control: a kill that comes before anything is written shows nothing


@pytest.fixture(scope="module")
def processes() -> ForkServerContext:
    """Starts a process in milliseconds: the imports are done once."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["tests.storage.crash_worker"])
    return context


def _run_and_kill(
    processes: ForkServerContext, target: Writing, data_dir: Path, url: str | None, lifetime_s: float
) -> list[str]:
    """Let a process write for a while, kill it, and return what it had acknowledged."""
    reader, writer = multiprocessing.Pipe(duplex=False)
    process = processes.Process(target=_with_pipe, args=(target, str(data_dir), url, writer))
    process.start()
    writer.close()
    with os.fdopen(os.dup(reader.fileno()), "rb") as lines:
        assert lines.readline() == b"ready\n"
        time.sleep(lifetime_s)
        process.kill()
        process.join()
        acknowledged = lines.read().decode().splitlines()
    reader.close()
    return acknowledged


def _with_pipe(target: Writing, data_dir: str, url: str | None, writer: object) -> None:
    target(data_dir, url, writer.fileno())  # type: ignore[attr-defined]


def _lost(database: Database, acknowledged: list[str]) -> list[str]:
    """Return the acknowledged lines that are missing."""
    return asyncio.run(database.read(lambda s: [line for line in acknowledged if not _is_there(s, line)]))


def _is_there(s: object, line: str) -> bool:
    kind, name = line.split()
    try:
        if kind == "feedback":
            return bool(feedback.get(s, name))  # type: ignore[arg-type]
        user = people.find(s, "http", "ana")  # type: ignore[arg-type]
        version = versions.get(s, user.id, int(name))  # type: ignore[arg-type, union-attr]
    except RowNotFound:
        return False
    return version.state == VersionState.ACCEPTED and user.active_version >= version.number  # type: ignore[union-attr]


def _torn(data_dir: Path) -> list[str]:
    """Version directories that are not exactly what they should be."""
    atomic.sweep_temporary(data_dir)
    directories = [path for path in (data_dir / "adapters").glob("*/*") if path.is_dir()]
    whole = {number: atomic.files_sha256(crash_worker.files_of(number)) for number in map(_number, directories)}
    return [str(path) for path in directories if directory_sha256(path) != whole[_number(path)]]


def _number(path: Path) -> int:
    return int(path.name)


def _missing(database: Database, data_dir: Path) -> list[str]:
    """Accepted versions whose directory is not the one that was accepted."""
    user = asyncio.run(database.read(lambda s: people.find(s, "http", "ana")))
    assert user is not None
    rows = asyncio.run(database.read(lambda s: versions.history(s, user.id)))
    accepted = [row for row in rows if row.state == VersionState.ACCEPTED]
    return [row.path for row in accepted if directory_sha256(data_dir / row.path) != row.sha256]


def test_acknowledged_writes_survive_and_directories_are_never_torn(
    processes: ForkServerContext, data_dir: Path, database_url: str | None
) -> None:
    """Ten kills of one data directory: nothing acknowledged is lost, no directory is half, each start succeeds."""
    chance = random.Random(7)
    total = 0
    for _ in range(NUM_KILLS):
        acknowledged = _run_and_kill(
            processes, crash_worker.write_soundly, data_dir, database_url, chance.uniform(0.03, 0.2)
        )
        database = Database.open(data_dir, database_url)
        assert _lost(database, acknowledged) == []
        assert _torn(data_dir) == []
        assert _missing(database, data_dir) == []
        # The next process finds an unclean stop again, as after a crash of the machine.
        asyncio.run(database.close())
        (data_dir / "heed.db.clean").unlink(missing_ok=database_url is not None)
        total += len(acknowledged)
    assert total > NUM_KILLS, "the kills came before anything was written"


def test_the_crash_test_catches_a_naive_writer(processes: ForkServerContext, data_dir: Path) -> None:
    """The same checks find lost and torn things where a writer makes the classic mistakes."""
    lost, torn = 0, 0
    for _ in range(TRIES):
        acknowledged = _run_and_kill(processes, crash_worker.write_naively, data_dir, None, 0.1)
        database = Database.open(data_dir)
        lost += len(_lost(database, acknowledged))
        torn += len(_torn(data_dir))
        asyncio.run(database.close())
        if lost and torn:
            return
    pytest.fail(f"{lost} lost, {torn} torn in {TRIES} kills")
