"""The trainer's work in a thread of its own, while the worker decodes.

A piece of a real model's lesson takes a second of a core, in which no stream would go on. In a thread it shares
the machine with decoding instead, which comes first wherever both want the same core (a nice level of the thread, which
those it computes with inherit). Invariants: one piece of work at a time, in the order it came; work that no one waits
for any more still ends before the next begins; small models and GPUs, whose pieces are short, do without.
"""

import itertools
import os
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

NICENESS = 5  # a third of a core against a thread that decodes on it
Record = dict[str, Any]


class Beside:
    """The thread, and the work it was given last."""

    def __init__(self) -> None:
        self._pool = ThreadPoolExecutor(1, "heed-trainer", initializer=_give_way)
        self._numbers = itertools.count(1)
        self._job = 0
        self._work: Future[Record] | None = None

    def begin(self, work: Callable[[], Record]) -> int:
        """Begin some work behind what is still under way. Return its number."""
        self._job = next(self._numbers)
        self._work = self._pool.submit(work)
        return self._job

    def result(self, job: int) -> Record | None:
        """Return what the work has made, or None as long as it lasts. Raises LookupError if other work came since."""
        if self._work is None or job != self._job:
            raise LookupError(f"the work {job} is no longer waited for")
        return self._work.result() if self._work.done() else None


def _give_way() -> None:
    """Let this thread, and those it computes with, come behind the ones that decode."""
    thread = threading.get_native_id()
    os.setpriority(os.PRIO_PROCESS, thread, os.getpriority(os.PRIO_PROCESS, thread) + NICENESS)
