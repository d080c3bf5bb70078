"""A limit on tries to sign in: by address, and for the one account over all addresses.

Invariants: strangers' tries delay the right password by seconds at most: pauses are short, the first try of an address
is never held up, and a browser that signed in before is counted by itself. In memory, for at most KNOWN_ADDRESSES.
"""

import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass

from aiohttp import web

FREE_TRIES = 3  # of one address
MAX_PAUSE_S = 30.0
FREE_TRIES_OF_ALL = 20  # of all addresses together
MAX_PAUSE_OF_ALL_S = 2.0
FORGET_S = 3600.0  # after the last try
KNOWN_ADDRESSES = 10_000
KNOWN_BROWSERS = 100


@dataclass
class _Tries:
    """The tries that are counted together."""

    free: int
    max_pause_s: float
    number: int = 0
    next_at_s: float = 0.0
    last_at_s: float = 0.0

    def count(self, now_s: float) -> None:
        """Count a try; from the last free one on, the next has to wait."""
        self.number = 1 if now_s - self.last_at_s > FORGET_S else self.number + 1
        self.last_at_s = now_s
        if self.number >= self.free:
            self.next_at_s = now_s + min(2.0 ** min(self.number - self.free, 20), self.max_pause_s)


class Attempts:
    """The sign-in tries of all addresses and browsers."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._known: OrderedDict[str, _Tries] = OrderedDict()  # by address, or by known browser
        self._browsers: OrderedDict[str, None] = OrderedDict()  # those that signed in
        self._all = _Tries(FREE_TRIES_OF_ALL, MAX_PAUSE_OF_ALL_S)

    def begin(self, address: str, browser: str) -> float:
        """Count a try. Return the seconds to wait if it comes too early; then it is not counted.

        `browser`: the value of its cookie.
        """
        is_stranger = browser not in self._browsers
        now_s, tries = self._clock(), self._tries(address if is_stranger else browser)
        next_at_s = max(tries.next_at_s, self._all.next_at_s) if is_stranger and tries.number else tries.next_at_s
        if now_s < next_at_s:
            return next_at_s - now_s
        tries.count(now_s)
        if is_stranger:
            self._all.count(now_s)
        return 0.0

    def passed(self, address: str, browser: str) -> None:
        """Forget the tries of an address after a right password, and know its browser from now on."""
        for name in (address, browser):
            self._known.pop(name, None)
        self._browsers[browser] = None
        while len(self._browsers) > KNOWN_BROWSERS:
            self._browsers.popitem(last=False)

    def _tries(self, name: str) -> _Tries:
        tries = self._known.setdefault(name, _Tries(FREE_TRIES, MAX_PAUSE_S))
        self._known.move_to_end(name)
        while len(self._known) > KNOWN_ADDRESSES:
            self._known.popitem(last=False)
        return tries


ADMIN_ATTEMPTS = web.AppKey("admin_attempts", Attempts)
