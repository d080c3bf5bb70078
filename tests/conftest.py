"""Fixtures and hooks of every test: no way out of this machine, Hypothesis, browser, database, a guard on the loop."""

import asyncio
import contextlib
import gc
import os
import shutil
import sqlite3
import subprocess
import time
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

from storage.database import Database
from tests.live_heed import LiveHeed
from tests.network_guard import NetworkGuard
from tests.spread import STARTED_ONCE, Spread, group
from tests.storage import postgres_server
from tests.storage.new_data_dir import copy_to
from tests.storage.postgres_server import PostgresServer
from tools import chromium

MEMORY = Path("/dev/shm")  # waiting for a disk's fsync, a dozen times in most tests, proves nothing
ROOMY_BYTES = 4 * 1024**3  # a container's has 64 MB

# No deadline: the machine may be shared. A failing example is printed so that it can be replayed.
settings.register_profile("full", max_examples=100, deadline=None, print_blob=True)
settings.register_profile(
    "quick", max_examples=10, stateful_step_count=15, deadline=None, suppress_health_check=list(HealthCheck)
)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add --quick and --engines."""
    parser.addoption("--engines", type=int, default=0, help="let the shared heed be a cluster of so many engines")
    parser.addoption("--quick", action="store_true", help="a tenth of Hypothesis' examples and shorter state machines")


def pytest_configure(config: pytest.Config) -> None:
    """Choose Hypothesis' profile (--hypothesis-profile wins), and where temporary folders lie (--basetemp wins)."""
    if not config.getoption("hypothesis_profile", None):
        settings.load_profile("quick" if config.getoption("--quick") else "full")
    if MEMORY.is_dir() and os.access(MEMORY, os.W_OK) and shutil.disk_usage(MEMORY).free > ROOMY_BYTES:
        os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(MEMORY))
    _share_the_cores()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin long tests first, and run tests that end the shared heed for good last.

    A later test that needs that heed would wait for another start.
    """
    items.sort(key=lambda item: (group(item.location[0]) not in STARTED_ONCE, _ends_heed(item)))


def pytest_collection_finish() -> None:
    """Freeze the objects imported so far: each garbage collection over them would take half a second."""
    gc.freeze()


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Spread:
    """How the tests are spread over processes (`make test`)."""
    return Spread(config, log)


def _ends_heed(item: pytest.Item) -> bool:
    return item.get_closest_marker("ends_heed") is not None


def _share_the_cores() -> None:
    """Let the models of several test processes share the cores; vLLM would bind all of them to the same one.

    A process on a core that a busy worker is bound to gets a twentieth of it, and a start takes minutes.
    """
    if "PYTEST_XDIST_WORKER" in os.environ:
        os.environ.setdefault("VLLM_CPU_OMP_THREADS_BIND", "nobind")
        os.environ.setdefault("OMP_NUM_THREADS", "1")


@pytest.fixture(scope="session", autouse=True)
def network_guard() -> Iterator[NetworkGuard]:
    """The guard that keeps this test run on this machine."""
    guard = NetworkGuard()
    with pytest.MonkeyPatch.context() as monkeypatch:
        guard.install(monkeypatch)
        yield guard


@pytest.fixture(autouse=True)
def stay_on_this_machine(network_guard: NetworkGuard) -> Iterator[None]:
    """Fail a test that reached beyond loopback, also where its code swallowed the refusal."""
    yield
    violations = list(network_guard.violations)  # since the last test, so those of longer-lived fixtures count, too
    network_guard.violations.clear()
    if violations:
        pytest.fail(f"reached beyond loopback: {', '.join(violations)}")


@pytest.fixture
def no_blocking_calls(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fail a call that blocks the event loop's thread: sleep, disk sync, opening SQLite, waiting for a child."""
    refuse_on_loop(monkeypatch, time, "sleep")
    refuse_on_loop(monkeypatch, os, "fsync")
    refuse_on_loop(monkeypatch, sqlite3, "connect")
    refuse_on_loop(monkeypatch, subprocess.Popen, "wait")
    refuse_on_loop(monkeypatch, subprocess.Popen, "communicate")


def refuse_on_loop(monkeypatch: pytest.MonkeyPatch, owner: Any, name: str) -> None:
    """In place: makes owner.name raise where this thread runs an event loop."""
    original: Callable[..., Any] = getattr(owner, name)

    def guarded(*args: Any, **kwargs: Any) -> Any:
        if asyncio._get_running_loop() is not None:
            pytest.fail(f"{name} blocks the event loop: use a thread or its asynchronous form")
        return original(*args, **kwargs)

    monkeypatch.setattr(owner, name, guarded)


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresServer]:
    """Yield a PostgreSQL server; a test that ends it starts it again."""
    with postgres_server.running() as server:
        yield server


@pytest.fixture
async def database(tmp_path: Path) -> AsyncIterator[Database]:
    """An empty database."""
    database = Database.open(copy_to(tmp_path / "data"))
    yield database
    await database.close()


@pytest.fixture(scope="session")
def chromium_path() -> str:
    """The Chromium for browser tests; without one the test fails, with what to install."""
    path = chromium.find()
    if path is None:
        pytest.fail("no Chromium on PATH: install it (apt install chromium)")
    return path


@pytest.fixture(scope="session")
def one_heed(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveHeed]:
    """The heed of `live_heed`, with no settings but its own: alone, or with --engines a cluster."""
    config_file = tmp_path_factory.mktemp("live") / "heed.toml"
    config_file.touch()
    with pytest.MonkeyPatch.context() as patch:
        for name in [name for name in os.environ if name.startswith("HEED_")]:
            patch.delenv(name)
        with contextlib.ExitStack() as stack:
            program, settings = ("bot", "run"), {}
            if num_engines := request.config.getoption("engines"):
                server = request.getfixturevalue("postgres")
                settings = {"HEED_DATABASE_URL": server.url(stack.enter_context(server.database()))}
                program = ("bot", "cluster", "up", "--engines", str(num_engines))
            heed = LiveHeed(config_file, program, settings)
            stack.callback(heed.close)
            yield heed


@pytest.fixture
def live_heed(one_heed: LiveHeed) -> LiveHeed:
    """A running heed with the pocket model, the same for all tests; one that an earlier test ended is started again."""
    one_heed.start()
    return one_heed
