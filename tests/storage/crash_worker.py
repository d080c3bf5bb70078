"""Processes that write until they are killed, and tell through a pipe what they were told is stored.

`write_soundly` uses storage as heed does. `write_naively` is the control: it acknowledges before the commit and
writes directories in place; if the test does not catch it, the test has lost its power.
"""

import asyncio
import os
import time
from pathlib import Path

from storage.database import Database
from storage.files import atomic
from storage.learning import feedback, versions
from storage.people import people
from storage.tables import Feedback

NUM_TASKS = 4


def files_of(number: int) -> dict[str, bytes]:
    """Return the files of version `number`: several files that cannot be written at once."""
    return {f"part-{n}": (number * 8 + n).to_bytes(4, "big") * 2_000 for n in range(8)}


def write_soundly(data_dir: str, url: str | None, pipe: int) -> None:
    """Feedback and adapter versions, each acknowledged when storage says so."""
    asyncio.run(_write(Path(data_dir), url, pipe, is_naive=False))


def write_naively(data_dir: str, url: str | None, pipe: int) -> None:
    """The same with the two classic mistakes."""
    asyncio.run(_write(Path(data_dir), url, pipe, is_naive=True))


async def _write(data_dir: Path, url: str | None, pipe: int, *, is_naive: bool) -> None:
    database = Database.open(data_dir, url)
    user_id = (await database.write(lambda s: people.resolve(s, "http", "ana"))).id
    _tell(pipe, "ready")
    async with asyncio.TaskGroup() as group:
        for _ in range(NUM_TASKS):
            group.create_task(_give_feedback(database, user_id, pipe, is_naive))
        group.create_task(_learn(database, data_dir, user_id, pipe, is_naive))


async def _give_feedback(database: Database, user_id: str, pipe: int, is_naive: bool) -> None:
    while True:
        item = Feedback(user_id=user_id, kind="correction", text="too long")
        if is_naive:
            _tell(pipe, f"feedback {item.id}")
        await database.write(lambda s, item=item: feedback.add(s, item))
        if not is_naive:
            _tell(pipe, f"feedback {item.id}")


async def _learn(database: Database, data_dir: Path, user_id: str, pipe: int, is_naive: bool) -> None:
    while True:
        version = await database.write(lambda s: versions.allocate(s, user_id, 0, "pocket", None, None))
        number, path, files = version.number, data_dir / version.path, files_of(version.number)
        write = _write_in_place if is_naive else atomic.write_directory
        sha256 = await asyncio.to_thread(write, path, files)
        await database.write(lambda s, n=number, sha256=sha256: versions.accept(s, user_id, n, sha256, 1))
        _tell(pipe, f"version {number}")


def _write_in_place(path: Path, files: dict[str, bytes]) -> str:
    path.mkdir(parents=True)
    for name, data in files.items():
        with (path / name).open("wb") as file:
            file.write(data)
        time.sleep(0.005)  # a disk that has other things to do
    return atomic.files_sha256(files)


def _tell(pipe: int, line: str) -> None:
    os.write(pipe, f"{line}\n".encode())  # shorter than PIPE_BUF: whole or not at all
