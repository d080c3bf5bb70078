"""A real database for every test that asks for one: once in a file and once on a server.

Tests of what only SQLite has are marked `sqlite_only`.
"""

import asyncio
import contextlib
import os
import tempfile
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import TypeVar

import pytest
from sqlmodel import Session, SQLModel

from storage.database import Database
from storage.people import people
from tests.storage.new_data_dir import copy_to
from tests.storage.postgres_server import PostgresServer

T = TypeVar("T")

# Rows go and counters begin anew. TRUNCATE makes a file for each table and index: a tenth of a second.
EMPTY = "\n".join(
    [
        "BEGIN;",
        "SET LOCAL session_replication_role = replica;",  # in any order, despite references
        *(f'DELETE FROM "{table}";' for table in SQLModel.metadata.tables),  # noqa: S608  names of our own
        "SELECT setval(oid::regclass, 1, false) FROM pg_class WHERE relkind = 'S';",
        "COMMIT;",
    ]
)


class Store:
    """A database driven from tests that are not async."""

    def __init__(self, data_dir: Path, url: str | None = None) -> None:
        self.data_dir = data_dir
        self.url = url
        self.runner = asyncio.Runner()
        self.database = Database.open(data_dir, url)

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
        self.database = Database.open(self.data_dir, self.url)

    def close(self) -> None:
        """A clean stop; harmless to repeat."""
        self.runner.run(self.database.close())


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run each test that uses a database once for each kind of database."""
    if "database_url" in metafunc.fixturenames:
        is_sqlite_only = metafunc.definition.get_closest_marker("sqlite_only") is not None
        metafunc.parametrize("database_url", ["sqlite"] if is_sqlite_only else ["sqlite", "postgresql"], indirect=True)


@contextlib.contextmanager
def fast_folder() -> Iterator[Path]:
    """A temporary folder in memory, if the system has one: waiting for a disk's fsync proves nothing here."""
    in_memory = Path("/dev/shm")
    with tempfile.TemporaryDirectory(prefix="heed-", dir=in_memory if os.access(in_memory, os.W_OK) else None) as name:
        yield Path(name)


@pytest.fixture
def data_dir() -> Iterator[Path]:
    """A data directory of the test's own."""
    with fast_folder() as folder:
        yield copy_to(folder / "data")


@pytest.fixture(scope="session")
def migrated(postgres: PostgresServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The name of a server's database after a first start and a clean stop; tests find it empty, one after another."""
    with postgres.database() as name:
        asyncio.run(Database.open(tmp_path_factory.mktemp("migrated"), postgres.url(name)).close())
        yield name


@pytest.fixture
def database_url(request: pytest.FixtureRequest) -> str | None:
    """HEED_DATABASE_URL: of an empty database on a server, or None for the file in the test's data directory."""
    if request.param == "sqlite":
        return None
    server, name = request.getfixturevalue("postgres"), request.getfixturevalue("migrated")
    server.do(name, EMPTY)
    return str(server.url(name))


@pytest.fixture
def store(data_dir: Path, database_url: str | None) -> Iterator[Store]:
    """A new database."""
    store = Store(data_dir, database_url)
    yield store
    store.close()
    store.runner.close()


@pytest.fixture
async def database(data_dir: Path, database_url: str | None) -> AsyncIterator[Database]:
    """A new database for async tests."""
    database = Database.open(data_dir, database_url)
    yield database
    await database.close()


@pytest.fixture
def name(postgres: PostgresServer) -> Iterator[str]:
    """The name of an empty database on a server, without heed's tables."""
    with postgres.database() as name:
        yield name


@pytest.fixture
def ana(store: Store) -> str:
    """A person's id."""
    return store.person("ana")


@pytest.fixture
def ben(store: Store) -> str:
    """Another person's id."""
    return store.person("ben")
