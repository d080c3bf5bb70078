"""The fixtures and hooks of tests/conftest.py work."""

import sqlite3
import time

import pytest
from hypothesis import settings


@pytest.mark.usefixtures("no_blocking_calls")
async def test_blocking_the_loop_fails_the_test() -> None:
    """A sleep or an SQLite connection in the event loop's thread is a failure."""
    with pytest.raises(pytest.fail.Exception, match="sleep blocks the event loop"):
        time.sleep(0)  # noqa: ASYNC251 - what this test is about
    with pytest.raises(pytest.fail.Exception, match="connect blocks the event loop"):
        sqlite3.connect(":memory:")


@pytest.mark.usefixtures("no_blocking_calls")
def test_a_thread_without_a_loop_may_block() -> None:
    """Outside an event loop the same calls do what they always do."""
    time.sleep(0)
    sqlite3.connect(":memory:").close()


def test_quick_shortens_hypothesis(pytestconfig: pytest.Config) -> None:
    """With --quick Hypothesis tries ten examples, without it a hundred."""
    if pytestconfig.getoption("hypothesis_profile", None):
        pytest.skip("another profile was asked for")
    assert settings().max_examples == (10 if pytestconfig.getoption("--quick") else 100)
