"""engine.worker.watchdog: a child ends when its owner is gone, and no other process is ever ended."""

import os
import signal
import subprocess
import sys
import time

import pytest

from engine.worker.watchdog import ProcessId, end_all, family
from tests.patience import PATIENCE_S

CHILD = """
import os, sys, time
from engine.worker.watchdog import ProcessId, watch
watch(ProcessId({pid}, {started}), 0.05)
print("watching", flush=True)
time.sleep(600)
"""
MIDDLE = """
import subprocess, sys
child = subprocess.Popen([sys.executable, "-c", {child!r}], stdout=subprocess.PIPE, text=True)
child.stdout.readline()
print(child.pid, flush=True)
"""
OWNER = """
import subprocess, sys, time
from engine.worker.watchdog import ProcessId
me = ProcessId.current()
middle = subprocess.Popen(
    [sys.executable, "-c", sys.argv[1].replace("PID", str(me.pid)).replace("STARTED", str(me.started))],
    stdout=subprocess.PIPE, text=True
)
print(middle.pid, middle.stdout.readline().strip(), flush=True)
time.sleep(600)
"""


def python(code: str, *arguments: str) -> "subprocess.Popen[str]":
    """Start a child that runs `code` from the project's root."""
    return subprocess.Popen([sys.executable, "-c", code, *arguments], stdout=subprocess.PIPE, text=True)


def wait_until_gone(pids: list[int]) -> list[int]:
    """Return those of `pids` that still run after a long wait."""
    deadline = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline and any(ProcessId.of(pid) for pid in pids):
        time.sleep(0.02)
    return [pid for pid in pids if ProcessId.of(pid)]


def test_a_process_is_known_by_number_and_start_time() -> None:
    """A later process with the same number is another process."""
    me = ProcessId.current()
    assert me.is_alive()
    assert not ProcessId(me.pid, me.started - 1).is_alive()


def test_a_zombie_counts_as_gone() -> None:
    """A zombie still has its number, and counts as ended."""
    child = python("pass")
    try:
        assert wait_until_gone([child.pid]) == []
    finally:
        child.wait()


def test_there_is_no_process_zero() -> None:
    """A number that no process has ever had belongs to none."""
    assert ProcessId.of(0) is None


@pytest.mark.crash
def test_a_sigkill_of_the_owner_ends_child_and_grandchild() -> None:
    """EngineCore and worker both end with heed, because each of them watches heed itself."""
    watching = CHILD.format(pid="PID", started="STARTED")
    middle_code = MIDDLE.format(child=watching) + watching
    owner = python(OWNER, middle_code)
    assert owner.stdout is not None
    middle, child = map(int, owner.stdout.readline().split())
    assert ProcessId.of(middle)
    assert ProcessId.of(child)
    os.kill(owner.pid, signal.SIGKILL)
    owner.wait()
    assert wait_until_gone([middle, child]) == []


@pytest.mark.crash
def test_an_owner_that_never_was_ends_the_child_at_once() -> None:
    """A child ends even if its owner was gone before the first check."""
    child = python(CHILD.format(pid=os.getpid(), started=1))
    assert wait_until_gone([child.pid]) == []
    child.wait()


def test_only_exactly_the_given_processes_are_ended() -> None:
    """A process with the right number and another start time is left alone."""
    one, other = python("import time; time.sleep(600)"), python("import time; time.sleep(600)")
    first, second = ProcessId.of(one.pid), ProcessId.of(other.pid)
    assert first is not None
    assert second is not None
    try:
        end_all([first, ProcessId(second.pid, second.started + 1)])
        assert wait_until_gone([one.pid]) == []
        assert second.is_alive()
        end_all([first])  # harmless to repeat
    finally:
        other.kill()
        one.wait()
        other.wait()


def test_the_family_reaches_up_to_the_owner_and_not_beyond() -> None:
    """The family below this process's parent is this process alone."""
    parent = ProcessId.of(os.getppid())
    assert parent is not None
    assert family(parent) == [ProcessId.current()]


FAMILY = """
import os
from engine.worker.watchdog import ProcessId, family
print(os.getpid(), *(process.pid for process in family(ProcessId(1, 0))))
"""


def test_a_family_is_of_one_session() -> None:
    """A process that has begun a session is a family of its own; its child belongs to it."""
    nested = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {FAMILY!r}], check=True)"
    for program in (FAMILY, nested):
        first = subprocess.Popen([sys.executable, "-c", program], stdout=-1, text=True, start_new_session=True)
        pid, *found = map(int, first.communicate(timeout=PATIENCE_S)[0].split())
        assert found == list(dict.fromkeys([pid, first.pid]))
