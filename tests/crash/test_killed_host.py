"""A SIGKILL of the process that owns vLLM leaves nothing behind."""

import os
import signal
import time
from pathlib import Path

import psutil
import pytest

from engine.watchdog import ProcessId
from tests.live_heed import LiveHeed

pytestmark = [pytest.mark.engine, pytest.mark.crash, pytest.mark.slow, pytest.mark.timeout(300)]

GONE_WITHIN_S = 10.0


def descendants(pid: int) -> list[ProcessId]:
    """Everything the process has started, and what that has."""
    found = (ProcessId.of(child.pid) for child in psutil.Process(pid).children(recursive=True))
    return [process for process in found if process is not None]


def test_ctrl_c_in_the_terminal_reaches_the_owner_alone(live_heed: LiveHeed) -> None:
    """The children have a session of their own: the owner decides when and how they end."""
    children = [child for child in descendants(live_heed.pid) if b"resource_tracker" not in _command(child)]
    sessions = {os.getsid(child.pid) for child in children}
    assert sessions
    assert os.getsid(live_heed.pid) not in sessions


@pytest.mark.ends_heed
def test_nothing_is_left_ten_seconds_after_a_sigkill(live_heed: LiveHeed) -> None:
    """EngineCore, worker and Python's own helpers: without the watchdog they hold 2 GB for good."""
    children = descendants(live_heed.pid)
    assert len(children) >= 2
    assert live_heed.end(signal.SIGKILL) == -signal.SIGKILL
    deadline = time.monotonic() + GONE_WITHIN_S
    while time.monotonic() < deadline and any(child.is_alive() for child in children):
        time.sleep(0.1)
    assert [child for child in children if child.is_alive()] == []


def _command(process: ProcessId) -> bytes:
    return Path(f"/proc/{process.pid}/cmdline").read_bytes()
