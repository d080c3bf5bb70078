"""One connection in a thread: made anew when it is gone, and shared with no other thread."""

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from sqlalchemy import Connection, text
from sqlalchemy.ext.asyncio import create_async_engine

from storage.errors import DatabaseLost
from storage.sql.pg_connection import PgConnection, first_line, sqlstate
from storage.sql.postgres import DRIVER
from tests.storage.postgres_server import PostgresServer

NUM_SESSIONS = "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'lane'"

MakeLane = Callable[..., PgConnection]


@pytest.fixture
def make_lane(postgres: PostgresServer) -> Iterator[MakeLane]:
    """Makes lanes to a server; closes them all."""
    made: list[PgConnection] = []

    def make(greet: Callable[[Any], None] | None = None) -> PgConnection:
        url = postgres.url("postgres").replace("postgresql", DRIVER)
        given = {"server_settings": {"application_name": "lane"}, "command_timeout": 60.0}
        made.append(PgConnection(create_async_engine(url, pool_size=1, max_overflow=0, connect_args=given), greet))
        return made[-1]

    yield make
    for lane in made:
        lane.close()


def _pid(connection: Connection) -> int:
    return int(connection.execute(text("SELECT pg_backend_pid()")).scalar_one())


def _end(postgres: PostgresServer, pid: int) -> None:
    """The server ends a session and has done so."""
    postgres.tell("postgres", f"SELECT pg_terminate_backend({pid}, 60000)")


def _wait_for(postgres: PostgresServer, count: str) -> None:
    """Until it is zero; the test's own time limit ends what never is."""
    while postgres.tell("postgres", count) != ["0"]:
        time.sleep(0.01)


def test_one_connection_serves_one_use_after_another(make_lane: MakeLane) -> None:
    """Also from several threads, as long as each waits for the one before."""
    lane, pids = make_lane(), set[int]()
    pids.add(lane.connected(_pid))
    thread = threading.Thread(target=lambda: pids.add(lane.connected(_pid)))
    thread.start()
    thread.join()
    assert len(pids) == 1


def test_a_connection_that_went_between_two_uses_is_made_anew(make_lane: MakeLane, postgres: PostgresServer) -> None:
    """No caller sees an error, and the new connection is greeted, too."""
    greeted: list[Any] = []
    lane = make_lane(greeted.append)
    first = lane.connected(_pid)
    _end(postgres, first)
    assert lane.connected(_pid) != first
    assert len(greeted) == 2


def test_a_connection_that_goes_in_the_middle_is_named(make_lane: MakeLane, postgres: PostgresServer) -> None:
    """The caller using it gets DatabaseLost, the next caller a new connection."""
    lane = make_lane()

    def use(connection: Connection) -> int:
        _end(postgres, _pid(connection))
        return _pid(connection)

    with pytest.raises(DatabaseLost, match="was lost"):
        lane.connected(use)
    assert lane.connected(_pid)


def test_a_server_that_falls_silent_is_lost(make_lane: MakeLane) -> None:
    """An answer that takes too long ends the connection; what comes next has a new one."""
    lane = make_lane()
    first = lane.connected(_pid)

    def ask_for_long(connection: Connection) -> None:
        """Whatever comes before may take its time."""
        driver: Any = connection.connection.driver_connection
        driver._config = driver._config._replace(command_timeout=0.2)
        connection.execute(text("SELECT pg_sleep(600)"))

    with pytest.raises(DatabaseLost):
        lane.connected(ask_for_long)
    assert lane.connected(_pid) != first


def test_whoever_greets_may_refuse(make_lane: MakeLane, postgres: PostgresServer) -> None:
    """Its error arrives, and no connection is left open."""

    def refuse(_: Any) -> None:
        raise LookupError("not today")

    with pytest.raises(LookupError, match="not today"):
        make_lane(refuse).connected(_pid)
    _wait_for(postgres, NUM_SESSIONS)


def test_a_forked_child_holds_no_copy(make_lane: MakeLane, postgres: PostgresServer) -> None:
    """The parent goes on while the child lives, and the session ends with the parent's copy."""
    lane = make_lane()
    before = lane.connected(_pid)
    child = os.fork()
    if child == 0:
        signal.pause()
    try:
        assert lane.connected(_pid) == before
        os.close(lane._socket.fileno())  # what the kernel does where the parent is killed
        _wait_for(postgres, f"SELECT count(*) FROM pg_stat_activity WHERE pid = {before}")  # noqa: S608  a number
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)


def test_closing_twice_is_harmless(make_lane: MakeLane) -> None:
    """Also where it was never used."""
    lane = make_lane()
    lane.close()
    lane.close()


def test_what_a_driver_says_is_one_line_without_rows() -> None:
    """PostgreSQL quotes the row in a second line."""
    error = OSError("duplicate key\nDETAIL: Key (text)=(secret) exists")
    assert first_line(error) == "duplicate key"
    assert first_line(TimeoutError()) == "TimeoutError"
    assert sqlstate(error) == ""
