"""A limit on tries to sign in: a few at once, then growing pauses.

Counted by address, so that a stranger's tries do not keep the operator out; in memory, for at most KNOWN_ADDRESSES.
"""

import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass

from aiohttp import web

FREE_TRIES = 3
MAX_PAUSE_S = 300.0
KNOWN_ADDRESSES = 10_000


@dataclass
class _Tries:
    number: int = 0
    next_at_s: float = 0.0


class Attempts:
    """The sign-in tries of all addresses."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._known: OrderedDict[str, _Tries] = OrderedDict()

    def begin(self, address: str) -> float:
        """Count a try. Return the seconds to wait if it comes too early; then it is not counted."""
        tries = self._known.setdefault(address, _Tries())
        self._known.move_to_end(address)
        while len(self._known) > KNOWN_ADDRESSES:
            self._known.popitem(last=False)
        now_s = self._clock()
        if now_s < tries.next_at_s:
            return tries.next_at_s - now_s
        tries.number += 1
        if tries.number >= FREE_TRIES:
            tries.next_at_s = now_s + min(2.0 ** min(tries.number - FREE_TRIES, 20), MAX_PAUSE_S)
        return 0.0

    def passed(self, address: str) -> None:
        """Forget the tries of an address after a right password."""
        self._known.pop(address, None)


ADMIN_ATTEMPTS = web.AppKey("admin_attempts", Attempts)
