"""An engine that starts leaves the processor to those that answer on the same machine.

Linux has a niceness for each thread, and what a thread begins inherits it. It is put back afterwards, which takes
CAP_SYS_NICE or a limit (`ulimit -e 20`); without either an engine starts as loudly as anything else.
"""

import os
import resource
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil

NICENESS = 19  # as low as it goes: Ray gives a running engine 15, so that gateways come first
_LOWEST = 20  # RLIMIT_NICE is this less the lowest niceness
_CAP_SYS_NICE = 23
_STATUS = Path("/proc/self/status")


@contextmanager
def quiet_start() -> Iterator[None]:
    """Let this process, and what it begins, have little of the processor until the end. Not for two at once."""
    before = os.getpriority(os.PRIO_PROCESS, 0)
    if not can_return_to(before):
        yield
        return
    _give_all(NICENESS)
    try:
        yield
    finally:
        _give_all(before)


def can_return_to(niceness: int) -> bool:
    """Return True if this process may lower its niceness to that again."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NICE)
    return _is_capable(_STATUS.read_text()) or soft == resource.RLIM_INFINITY or soft >= _LOWEST - niceness


def _is_capable(status: str) -> bool:
    """Return True if a process with this status has CAP_SYS_NICE; root in a container need not."""
    effective = next(line.split()[1] for line in status.splitlines() if line.startswith("CapEff:"))
    return bool(int(effective, 16) >> _CAP_SYS_NICE & 1)


def _give_all(niceness: int) -> None:
    """Give a niceness to every thread of this process and of its children; one that has ended needs none."""
    own = psutil.Process()
    for process in (own, *own.children(recursive=True)):
        with suppress(psutil.NoSuchProcess):
            for thread in process.threads():
                with suppress(ProcessLookupError):
                    os.setpriority(os.PRIO_PROCESS, thread.id, niceness)
