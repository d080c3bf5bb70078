"""The watchdog that ends vLLM's child processes when heed is gone.

A SIGKILL of heed leaves EngineCore and Worker alive (seen: 45 s later, 2.3 GB). A thread in each of them checks
heed's pid; when that process no longer exists the child ends itself, at once, without cleaning up. Invariant: no other
process is ever ended: `end_all` (in heed) compares the start time as well, since process ids are used again.
"""

import os
import signal
import threading
import time
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class ProcessId:
    """A process that cannot be mistaken for a later one with the same number. `started`: clock ticks since boot."""

    pid: int
    started: int

    @classmethod
    def of(cls, pid: int) -> "ProcessId | None":
        """Return the process with this number, or None if there is none (a zombie counts as none)."""
        try:
            stat = Path(f"/proc/{pid}/stat").read_text()
        except OSError:
            return None
        state, *rest = stat.rpartition(")")[2].split()  # the name in brackets may hold spaces
        return None if state in "ZX" else cls(pid, int(rest[18]))

    @classmethod
    def current(cls) -> "ProcessId":
        """Return this process. Raises OSError without /proc."""
        process = cls.of(os.getpid())
        if process is None:
            raise OSError("this process has no entry in /proc: heed runs on Linux")
        return process

    def is_alive(self) -> bool:
        """Return True if exactly this process still runs."""
        return ProcessId.of(self.pid) == self


def watch(owner: ProcessId, interval_s: float) -> threading.Thread:
    """Start the thread that ends this process when `owner` is gone."""
    thread = threading.Thread(target=_wait_and_end, args=(owner, interval_s), name="heed-watchdog", daemon=True)
    thread.start()
    return thread


def _wait_and_end(owner: ProcessId, interval_s: float) -> None:
    while owner.is_alive():
        time.sleep(interval_s)
    _kill(os.getpid())


def end_all(processes: list[ProcessId]) -> None:
    """Kill those of `processes` that still run."""
    for process in processes:
        if process.is_alive():
            _kill(process.pid)


def family(owner: ProcessId) -> list[ProcessId]:
    """Return this process and its ancestors below `owner`: worker and EngineCore on a CPU, one process on a GPU.

    They are a session of their own; what EngineCore is a fork of is not of it.
    """
    found: list[ProcessId] = []
    pid = os.getpid()
    while pid > 1 and pid != owner.pid and _session_of(pid) == os.getsid(0):
        process = ProcessId.of(pid)
        if process is None:
            break
        found.append(process)
        pid = _parent_of(pid)
    return found


def _session_of(pid: int) -> int:
    try:
        return os.getsid(pid)
    except ProcessLookupError:
        return 0


def _parent_of(pid: int) -> int:
    try:
        return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
    except OSError:
        return 0


def _kill(pid: int) -> None:
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        return
