"""A real database on disk for every test that asks for one."""

import asyncio
import contextlib
import os
import shutil
import tempfile
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import TypeVar

import pytest
from sqlmodel import Session

from storage import people
from storage.database import Database

T = TypeVar("T")


class Store:
    """A database driven from tests that are not async."""

    def __init__(self, data_dir: Path) -> None:
        self.data_dir = data_dir
        self.runner = asyncio.Runner()
        self.database = Database.open(data_dir)

    def write(self, work: Callable[[Session], T]) -> T:
        """Database.write, waited for."""
        return self.runner.run(self.database.write(work))

    def read(self, work: Callable[[Session], T]) -> T:
        """Database.read, waited for."""
        return self.runner.run(self.database.read(work))

    def person(self, account: str) -> str:
        """The id of the person with this HTTP account."""
        return self.write(lambda s: people.resolve(s, "http", account)).id

    def reopen(self) -> None:
        """A restart."""
        self.runner.run(self.database.close())
        self.database = Database.open(self.data_dir)

    def close(self) -> None:
        """A clean stop; harmless to repeat."""
        self.runner.run(self.database.close())


@contextlib.contextmanager
def fast_folder() -> Iterator[Path]:
    """A temporary folder in memory, if the system has one: waiting for a disk's fsync proves nothing here."""
    in_memory = Path("/dev/shm")
    with tempfile.TemporaryDirectory(prefix="heed-", dir=in_memory if os.access(in_memory, os.W_OK) else None) as name:
        yield Path(name)


def copy_data_dir(source: Path, folder: Path) -> Path:
    """A copy of a data directory, below a folder."""
    return Path(shutil.copytree(source, folder / "data"))


@pytest.fixture(scope="session")
def new_data_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data directory after a first start and a clean stop; tests work on copies of it."""
    data_dir = tmp_path_factory.mktemp("new") / "data"
    asyncio.run(Database.open(data_dir).close())
    return data_dir


@pytest.fixture
def data_dir(new_data_dir: Path) -> Iterator[Path]:
    """A data directory of the test's own."""
    with fast_folder() as folder:
        yield copy_data_dir(new_data_dir, folder)


@pytest.fixture
def store(data_dir: Path) -> Iterator[Store]:
    """A new database."""
    store = Store(data_dir)
    yield store
    store.close()
    store.runner.close()


@pytest.fixture
async def database(data_dir: Path) -> AsyncIterator[Database]:
    """A new database for async tests."""
    database = Database.open(data_dir)
    yield database
    await database.close()


@pytest.fixture
def ana(store: Store) -> str:
    """A person's id."""
    return store.person("ana")


@pytest.fixture
def ben(store: Store) -> str:
    """Another person's id."""
    return store.person("ben")
