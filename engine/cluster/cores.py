"""The cores on which the engines of one machine compute: no two are bound to the same ones.

vLLM binds what computes to the cores that it finds, all but one. Two engines that each take the machine for their own
are bound to the same cores: on two cores to one, where the busier engine kept the other one waiting for minutes.
"""

import os
from collections.abc import Iterable, Sequence
from pathlib import Path

BIND, THREADS = "VLLM_CPU_OMP_THREADS_BIND", "OMP_NUM_THREADS"
UNBOUND = "nobind"
LEAST = 2  # cores of an engine that is bound: one computes, one serves
_TOPOLOGY = Path("/sys/devices/system/cpu")


def one_of(place: int, count: int, cores: Sequence[int]) -> dict[str, str]:
    """Return what vLLM's processes read in one of `count` engines that share these cores, `place` from 0."""
    share = cores[place * len(cores) // count : (place + 1) * len(cores) // count]
    return _bound(share) if len(share) >= LEAST else _unbound(share)


def among_unknown(allowed: Sequence[int], all_cores: Sequence[int]) -> dict[str, str]:
    """Return the same for an engine beside which there may be others: bound only where it was given some cores."""
    return _bound(allowed) if LEAST <= len(allowed) < len(all_cores) else _unbound(allowed)


def allowed_here() -> list[int]:
    """Return the physical cores on which this process may run (`taskset`), by one of their processors each."""
    return _physical(os.sched_getaffinity(0))


def all_here() -> list[int]:
    """Return the physical cores of this machine, in the same way."""
    return _physical(range(os.cpu_count() or 1))


def _bound(cores: Sequence[int]) -> dict[str, str]:
    return {BIND: ",".join(map(str, cores[1:])), THREADS: str(len(cores) - 1)}


def _unbound(cores: Sequence[int]) -> dict[str, str]:
    return {BIND: UNBOUND, THREADS: str(max(1, len(cores) - 1))}


def _physical(processors: Iterable[int], topology: Path = _TOPOLOGY) -> list[int]:
    """Return the first of these processors of each core; each is a core where the system does not say."""
    found: dict[str, int] = {}
    for processor in sorted(processors):
        siblings = topology / f"cpu{processor}" / "topology" / "thread_siblings_list"
        found.setdefault(siblings.read_text() if siblings.is_file() else str(processor), processor)
    return list(found.values())
