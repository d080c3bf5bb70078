"""engine.worker.beside: work in a thread of its own, one piece after the other, which gives way to decoding."""

import os
import threading
import time
from collections.abc import Callable
from typing import Any

import pytest

from engine.worker.beside import NICENESS, Beside, WorkLost
from engine.worker.spare_cores import SpareCores
from tests.patience import PATIENCE_S


def ended(beside: Beside, job: int) -> dict[str, Any]:
    """Return the result of a job, once there is one."""
    ends_s = time.monotonic() + PATIENCE_S
    while (found := beside.result(job)) is None:
        assert time.monotonic() < ends_s
        time.sleep(0.001)
    return found


def held(opened: threading.Event) -> Callable[[], dict[str, Any]]:
    """Return work that lasts until an event."""
    return lambda: {"opened": opened.wait(PATIENCE_S)}


def test_work_goes_on_beside_the_caller_and_gives_way_to_it() -> None:
    """It has a thread of its own, of a lower priority; threads of the caller keep theirs."""
    beside, opened = Beside(SpareCores(os.sched_getaffinity(0))), threading.Event()
    job = beside.begin(held(opened))
    assert beside.result(job) is None
    opened.set()
    assert ended(beside, job) == {"opened": True}
    of_thread = ended(beside, beside.begin(lambda: {"nice": priority()}))["nice"]
    assert of_thread == min(19, priority() + NICENESS)


def priority() -> int:
    """Return the nice level of the thread that asks."""
    return os.getpriority(os.PRIO_PROCESS, threading.get_native_id())


def test_two_callers_each_get_their_own_result() -> None:
    """Two pieces never touch the model at once: they come one after the other, whoever asks first."""
    beside, opened = Beside(SpareCores(os.sched_getaffinity(0))), threading.Event()
    order: list[int] = []
    first = beside.begin(lambda: {"first": opened.wait(PATIENCE_S), "order": order.append(1)})
    second = beside.begin(lambda: {"second": True, "order": order.append(2)})
    assert beside.result(second) is None
    opened.set()
    assert ended(beside, second)["second"]
    assert ended(beside, first)["first"]
    assert order == [1, 2]
    with pytest.raises(LookupError, match="no work"):
        beside.result(first)


def test_results_that_no_one_asks_for_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    """The oldest first, so that calls that were cancelled leave nothing behind."""
    monkeypatch.setattr("engine.worker.beside.KEPT", 2)
    beside = Beside(SpareCores(os.sched_getaffinity(0)))
    jobs = [beside.begin(lambda: {"made": 1}) for _ in range(3)]
    assert [ended(beside, job) for job in jobs[1:]] == [{"made": 1}] * 2
    with pytest.raises(LookupError, match="no work"):
        beside.result(jobs[0])


def test_nothing_is_known_of_work_that_never_began() -> None:
    """A worker that was restarted has none."""
    with pytest.raises(WorkLost, match="no work"):
        Beside(SpareCores(os.sched_getaffinity(0))).result(1)
