"""engine.cluster.quiet_start: every thread and child is nice meanwhile, and is not afterwards."""

import os
import resource
import subprocess
import sys
import threading

import psutil
import pytest

from engine.cluster import quiet_start as quiet
from engine.cluster.quiet_start import NICENESS, can_return_to, quiet_start

BEFORE = os.getpriority(os.PRIO_PROCESS, 0)

needs_right = pytest.mark.skipif(not can_return_to(BEFORE), reason="a niceness cannot be lowered again here")


def niceness_of(process: psutil.Process) -> set[int]:
    """Return the niceness of each thread of a process."""
    return {os.getpriority(os.PRIO_PROCESS, thread.id) for thread in process.threads()}


@needs_right
def test_threads_and_children_are_nice_until_the_end() -> None:
    """Those that were there, and those that were begun meanwhile."""
    is_over = threading.Event()
    early, late = (threading.Thread(target=is_over.wait) for _ in range(2))
    early.start()
    with quiet_start():
        late.start()
        child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
        seen = psutil.Process(), psutil.Process(child.pid)
        assert [niceness_of(one) for one in seen] == [{NICENESS}, {NICENESS}]
    assert [niceness_of(one) for one in seen] == [{BEFORE}, {BEFORE}]
    is_over.set()
    child.communicate(b"\n")


@needs_right
def test_a_start_that_fails_is_over_too() -> None:
    """The process goes on as before."""
    with pytest.raises(ValueError, match="no model"), quiet_start():
        raise ValueError("no model")
    assert niceness_of(psutil.Process()) == {BEFORE}


def test_without_the_right_to_return_nothing_is_changed(monkeypatch: pytest.MonkeyPatch) -> None:
    """An engine that stayed nice for good would be worse."""
    monkeypatch.setattr(quiet, "can_return_to", lambda _niceness: False)
    with quiet_start():
        assert niceness_of(psutil.Process()) == {BEFORE}


@pytest.mark.parametrize(("soft", "can"), [(0, False), (19, False), (20, True), (resource.RLIM_INFINITY, True)])
def test_the_limit_says_who_may(soft: int, can: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """20 less the niceness to return to."""
    monkeypatch.setattr(quiet, "_is_capable", lambda _status: False)
    monkeypatch.setattr(resource, "getrlimit", lambda _which: (soft, soft))
    assert can_return_to(0) is can


def test_root_in_a_container_need_not_be_capable() -> None:
    """The line of the capabilities that hold is read, as Docker gives them and as a whole root has them."""
    assert not quiet._is_capable("Name:\tray\nCapEff:\t00000000a80425fb\nCapBnd:\t000001ffffffffff\n")
    assert quiet._is_capable("CapEff:\t000001ffffffffff\n")
