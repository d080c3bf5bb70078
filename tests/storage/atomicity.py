"""Checks a recorded history of one register: is there an order of its reads and writes in which each read is right?

Every value is written at most once. For such histories the answer needs no search (Gibbons and Korach, Testing Shared
Memories, SIAM Journal on Computing 26(4), 1997): the reads and the write of a value have to lie together, so the time
in which the register must have had it is known, and two such times may not cross.
"""

import math
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

INITIAL = 0


@dataclass(frozen=True)
class Operation:
    """A read or a write of one value; `ended_s` is infinite where nobody heard of its end."""

    is_write: bool
    value: int
    begun_s: float
    ended_s: float = math.inf


@dataclass(frozen=True)
class Zone:
    """The time of one value: from the first end of its operations to their last begin."""

    value: int
    first_end_s: float
    last_begin_s: float

    @property
    def is_held(self) -> bool:
        """True if the register had the value all that time; otherwise at some moment in it."""
        return self.first_end_s < self.last_begin_s

    @property
    def span(self) -> tuple[float, float]:
        """Its ends, in order."""
        return min(self.first_end_s, self.last_begin_s), max(self.first_end_s, self.last_begin_s)

    def excludes(self, other: "Zone") -> bool:
        """Return True if the register, which held this value all the time, cannot have had the other in its."""
        (start_s, end_s), (low_s, high_s) = self.span, other.span
        return low_s < end_s and start_s < high_s if other.is_held else start_s < low_s and high_s < end_s


def faults(history: Iterable[Operation]) -> list[str]:
    """Return why no order is right, empty if there is one. The register begins as INITIAL."""
    of_value: defaultdict[int, list[Operation]] = defaultdict(list)
    for operation in (Operation(True, INITIAL, -math.inf, -math.inf), *history):
        of_value[operation.value].append(operation)
    found = [fault for value, operations in of_value.items() for fault in _impossible(value, operations)]
    zones = [_zone(value, operations) for value, operations in of_value.items() if _is_seen(operations)]
    held = [zone for zone in zones if zone.is_held]
    return found + [f"{b.value} while it was {a.value}" for a in held for b in zones if a is not b and a.excludes(b)]


def _is_seen(operations: list[Operation]) -> bool:
    """Return False for a write that nobody heard the end of, and whose value nobody read: it may never have been."""
    return any(operation.ended_s < math.inf for operation in operations)


def _impossible(value: int, operations: list[Operation]) -> list[str]:
    writes = [operation for operation in operations if operation.is_write]
    if len(writes) != 1:
        return [f"{value} was written {len(writes)} times"]
    early = [o for o in operations if not o.is_write and o.ended_s < writes[0].begun_s]
    return [f"{value} was read before it was written"] if early else []


def _zone(value: int, operations: list[Operation]) -> Zone:
    return Zone(value, min(o.ended_s for o in operations), max(o.begun_s for o in operations))
