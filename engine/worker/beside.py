"""The trainer's work in a thread of its own, while the worker decodes.

A piece of a real model's lesson takes a second of a core, in which no stream would go on. In a thread it shares
the machine with decoding instead, which comes first wherever both want the same core (a nice level of the thread, which
those it computes with inherit). Invariants: one piece of work at a time, in the order it came; work that no one waits
for any more still ends before the next begins; small models and GPUs, whose pieces are short, do without.
"""

import itertools
import os
import secrets
import threading
from collections import OrderedDict
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

from engine.worker.spare_cores import SpareCores

KEPT = 256  # jobs whose results are remembered
NICENESS = 5  # a third of a core against a thread that decodes on it
Record = dict[str, Any]


class WorkLost(LookupError):
    """The worker knows nothing of this work: it has been started again since."""


class Beside:
    """The thread, and the work that waits for it, runs, or has ended and was not asked after yet.

    `cores` are those that the work may borrow.
    """

    def __init__(self, cores: SpareCores) -> None:
        """Start the thread; it has no work yet."""
        self.cores = cores
        self._pool = ThreadPoolExecutor(1, "heed-trainer", initializer=_give_way)
        self._numbers = itertools.count(secrets.randbelow(1 << 40))  # no job of a worker that died has one of these
        self._work: OrderedDict[int, Future[Record]] = OrderedDict()

    def begin(self, work: Callable[[], Record]) -> int:
        """Begin some work behind what is still under way. Return its number."""
        job = next(self._numbers)
        self._work[job] = self._pool.submit(work)
        while len(self._work) > KEPT:  # asked for by calls that were cancelled
            self._work.popitem(last=False)
        return job

    def result(self, job: int) -> Record | None:
        """Return what the work has made, once, or None as long as it lasts. Raises WorkLost if it is not known."""
        if job not in self._work:
            raise WorkLost(f"no work {job} is under way")
        return self._work.pop(job).result() if self._work[job].done() else None


def _give_way() -> None:
    """Let this thread, and those it computes with, come behind the ones that decode."""
    thread = threading.get_native_id()
    os.setpriority(os.PRIO_PROCESS, thread, os.getpriority(os.PRIO_PROCESS, thread) + NICENESS)
