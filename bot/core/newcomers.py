"""A limit on new people by the address they come from: each has rows that stay.

Counted in memory, for at most KNOWN_ADDRESSES; an hour begins with an address's first new person.
"""

import math
import time
from collections import OrderedDict
from collections.abc import Callable

from bot.errors import QuotaUsed

HOUR_S = 3600.0
KNOWN_ADDRESSES = 10_000
TOO_MANY = "Too many new people came from this address within an hour. Try again in {minutes} min."


class Newcomers:
    """The new people of every address."""

    def __init__(self, per_hour: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._per_hour = per_hour
        self._clock = clock
        self._hours: OrderedDict[str, tuple[float, int]] = OrderedDict()  # when it began, and how many came since

    def admit(self, address: str) -> None:
        """Count a new person. Raises QuotaUsed where the hour of the address has no more; then none is counted."""
        began_s, number = self.check(address)
        self._hours[address] = began_s, number + 1
        self._hours.move_to_end(address)
        while len(self._hours) > KNOWN_ADDRESSES:
            self._hours.popitem(last=False)

    def check(self, address: str) -> tuple[float, int]:
        """Return when the hour of the address began and how many came since. Raises QuotaUsed if it has no more."""
        now_s = self._clock()
        began_s, number = self._hours.get(address, (now_s, 0))
        left_s = began_s + HOUR_S - now_s
        if left_s <= 0:
            return now_s, 0
        if number >= self._per_hour:
            raise QuotaUsed(TOO_MANY.format(minutes=math.ceil(left_s / 60)), left_s)
        return began_s, number
