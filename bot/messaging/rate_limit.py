"""Rate limits of one bot's posts and edits: a bucket per place, one over all places, and waits the platform asks for.

Invariants: a wait the platform asked for in one place (`park`) holds up that place only; anyone who waits for a place
goes in the order of asking; a place no one posts in is forgotten. Durations come from a monotonic clock.
"""

import asyncio
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field

from bot.backoff import Sleep
from bot.channel import Limits
from bot.events import Place
from bot.messaging.outbox_item import chat_of

KNOWN_PLACES = 10_000  # places remembered; the longest unused goes first
SLACK = 1.05  # a platform's clock and ours do not agree to the millisecond
MAX_GROWTH = 16.0  # how much slower live edits may become

Clock = Callable[[], float]


@dataclass
class _Bucket:
    """One place. `due_s`: when the bucket is full again (generic cell rate algorithm)."""

    due_s: float = 0.0
    parked_until_s: float = 0.0
    growth: float = 1.0
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)


class Limiter:
    """Lets callers through at the pace of the platform's limits."""

    def __init__(self, limits: Limits, clock: Clock = time.monotonic, sleep: Sleep = asyncio.sleep) -> None:
        self._limits = limits
        self._clock = clock
        self._sleep = sleep
        self._places: OrderedDict[str, _Bucket] = OrderedDict()
        self._due_s = 0.0  # of the bucket over all places: one second of calls deep

    async def turn(self, place: Place) -> None:
        """Wait until one more call may be made in this place, and take it."""
        bucket = self._bucket(place)
        async with bucket.lock:
            while (wait_s := max(self.wait_s(place), self._shared_wait_s())) > 0:
                await self._sleep(wait_s)
            self._take(bucket, place)

    def try_turn(self, place: Place) -> bool:
        """Take a call if one is free at once and another is left for posts; never wait."""
        bucket = self._bucket(place)
        has_spare = self._limits.burst < 2 or bucket.due_s + self._interval_s(place) <= self._horizon_s(place)
        if bucket.lock.locked() or not has_spare or max(self.wait_s(place), self._shared_wait_s()) > 0:
            return False
        self._take(bucket, place)
        return True

    def park(self, place: Place, retry_after_s: float) -> None:
        """Make no call in this place for as long as the platform asked, and edit less often from now on."""
        bucket = self._bucket(place)
        bucket.parked_until_s = max(bucket.parked_until_s, self._clock() + retry_after_s * SLACK)
        bucket.growth = min(bucket.growth * 2, MAX_GROWTH)

    def edit_interval_s(self, place: Place, num_edits: int) -> float:
        """Return how long to wait before the next live edit: longer in a long answer, and after a complaint."""
        base_s = max(self._limits.edit_interval_s, self._interval_s(place) if not place.is_private else 0.0)
        return base_s * self._bucket(place).growth * (1 + num_edits / 10)

    def wait_s(self, place: Place) -> float:
        """Return how long this place has to wait now, apart from what others do."""
        bucket = self._bucket(place)
        now_s = self._clock()
        return max(bucket.parked_until_s - now_s, bucket.due_s - self._horizon_s(place), 0.0)

    def _horizon_s(self, place: Place) -> float:
        return self._clock() + self._interval_s(place) * max(self._limits.burst - 1, 0)

    def _shared_wait_s(self) -> float:
        return max(self._due_s - self._clock() - 1.0, 0.0)

    def _take(self, bucket: _Bucket, place: Place) -> None:
        now_s = self._clock()
        bucket.due_s = max(bucket.due_s, now_s) + self._interval_s(place)
        self._due_s = max(self._due_s, now_s) + 1 / self._limits.calls_per_s

    def _interval_s(self, place: Place) -> float:
        if place.is_private:
            return self._limits.post_interval_s
        return self._limits.group_interval_s or self._limits.post_interval_s

    def _bucket(self, place: Place) -> _Bucket:
        key = chat_of(place)  # threads share their chat's limit
        if key not in self._places:
            self._places[key] = _Bucket()
            self._forget_unused()
        self._places.move_to_end(key)
        return self._places[key]

    def _forget_unused(self) -> None:
        while len(self._places) > KNOWN_PLACES:
            key, oldest = next(iter(self._places.items()))
            if oldest.lock.locked() or oldest.parked_until_s > self._clock():
                self._places.move_to_end(key)
                return
            del self._places[key]
