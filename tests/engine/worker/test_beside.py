"""engine.worker.beside: work in a thread of its own, one piece after the other, which gives way to decoding."""

import os
import threading
import time
from collections.abc import Callable
from typing import Any

import pytest

from engine.worker.beside import NICENESS, Beside
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
    beside, opened = Beside(), threading.Event()
    job = beside.begin(held(opened))
    assert beside.result(job) is None
    opened.set()
    assert ended(beside, job) == {"opened": True}
    of_thread = ended(beside, beside.begin(lambda: {"nice": priority()}))["nice"]
    assert of_thread == min(19, priority() + NICENESS)


def priority() -> int:
    """Return the nice level of the thread that asks."""
    return os.getpriority(os.PRIO_PROCESS, threading.get_native_id())


def test_work_that_no_one_waits_for_ends_before_the_next_begins() -> None:
    """Two pieces never touch the model at once; the result of the first is not mistaken for that of the second."""
    beside, opened, order = Beside(), threading.Event(), []
    abandoned = beside.begin(lambda: {"first": opened.wait(PATIENCE_S) and order.append(1)})
    wanted = beside.begin(lambda: {"second": order.append(2)})
    assert beside.result(wanted) is None
    with pytest.raises(LookupError, match="no longer"):
        beside.result(abandoned)
    opened.set()
    ended(beside, wanted)
    assert order == [1, 2]


def test_nothing_is_known_of_work_that_never_began() -> None:
    """A worker that was restarted has none."""
    with pytest.raises(LookupError, match="no longer"):
        Beside().result(1)
