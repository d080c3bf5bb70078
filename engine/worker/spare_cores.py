"""Cores for training beyond the worker's own: those that no other process computes on.

vLLM leaves a core to the processes that serve it, and they hardly use it while a large model trains. Two threads halve
a lesson where that core is idle; where it is not they cost a third more than one, and so what others used since the
last look decides (`/proc/stat`). While the worker decodes, what is trained beside it (`engine.worker.beside`) has the
other cores and half of the worker's own instead. Invariant: outside `borrowed` the worker computes on its own cores,
with its threads.
"""

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import torch
from torch._C import set_num_threads  # vLLM's worker replaces torch's own name for it

IDLE_SHARE = 0.7  # of a core that has to be free for a thread to be put there
MIN_WINDOW_S = 0.5  # the kernel counts in hundredths of a second
_TICKS_PER_S = os.sysconf("SC_CLK_TCK")
_BUSY_FIELDS = (1, 2, 3, 6, 7, 8)  # of a line of /proc/stat: user, nice, system, irq, softirq, steal


@dataclass(frozen=True)
class CoreUsage:
    """Seconds that the cores were busy, that of it with this process, and when."""

    all_s: float
    own_s: float
    at_s: float


class SpareCores:
    """The cores that a worker may borrow."""

    def __init__(self, allowed: set[int], stat: Path = Path("/proc/stat")) -> None:
        """Take the worker's own cores from what it is bound to now; `allowed` are those the whole of heed may use."""
        self._allowed = allowed
        self._own = os.sched_getaffinity(0)
        self._threads = torch.get_num_threads()
        self._stat = stat
        self._before = self._usage()
        self._num_free = 0
        self.is_decoding = False  # beside what is computed on the borrowed cores

    @contextmanager
    def borrowed(self) -> Iterator[int]:
        """Compute on the worker's cores and on those that are free. Yield the number of threads."""
        self._look()
        cores, threads = self._chosen()
        if (cores, threads) == (self._own, self._threads):
            yield threads
            return
        try:
            os.sched_setaffinity(0, cores)  # threads that begin from here inherit it
            set_num_threads(threads)
            yield threads
        finally:
            set_num_threads(self._threads)
            os.sched_setaffinity(0, self._own)

    def _chosen(self) -> tuple[set[int], int]:
        """Return the cores to compute on, and with how many threads."""
        if not self.is_decoding:
            return (self._allowed if self._num_free else self._own), self._threads + self._num_free
        kept = sorted(self._own)[: len(self._own) - len(self._own) // 2]
        left = self._allowed.difference(kept) or self._own
        return left, max(1, min(len(left), self._threads + 1))

    def _look(self) -> None:
        now = self._usage()
        window_s = now.at_s - self._before.at_s
        if window_s < MIN_WINDOW_S:
            return
        others_s = (now.all_s - self._before.all_s) - (now.own_s - self._before.own_s)
        free = len(self._allowed - self._own) - max(0.0, others_s / window_s)
        self._num_free = max(0, int(free + 1 - IDLE_SHARE))
        self._before = now

    def _usage(self) -> CoreUsage:
        ticks = 0
        for line in self._stat.read_text().splitlines():
            name, *_ = fields = line.split()
            if name[:3] == "cpu" and name[3:].isdigit() and int(name[3:]) in self._allowed:
                ticks += sum(int(fields[place]) for place in _BUSY_FIELDS)
        return CoreUsage(ticks / _TICKS_PER_S, time.process_time(), time.monotonic())
