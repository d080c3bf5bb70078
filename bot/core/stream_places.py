"""The places for answers that are written at the same time, and the queue before them.

Invariants: a place that becomes free goes to the owner who holds the fewest, and among these to the one who has waited
longest; no owner holds more than their share, so that one key's open streams leave room for another's; the queue is
bounded, and a call that leaves it is forgotten.
"""

import asyncio
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field

from bot.config import HttpSettings
from bot.errors import Overloaded

FULL = "heed is writing as many answers as it can, and {num_waiting} more wait. Try again in a moment."
TOO_LONG = "heed was writing other answers for {seconds:.0f} s. Try again in a moment."
OWNER: ContextVar[str] = ContextVar("owner", default="")  # of the call that is worked on; empty: the person themselves

OnMove = Callable[[int], None]  # gets the number of those before in the queue


@dataclass(eq=False)
class _Waiting:
    owner: str
    on_move: OnMove | None = None
    is_let_in: asyncio.Event = field(default_factory=asyncio.Event)
    num_before: int = -1  # as last told


class StreamPlaces:
    """The owners of answers that are written, and of those that wait. `on_change` gets the numbers of both."""

    def __init__(self, settings: HttpSettings, on_change: Callable[[int, int], None]) -> None:
        """Open all places. The limits are read from the settings each time: they may change while heed runs."""
        self._settings = settings
        self._on_change = on_change
        self._held: Counter[str] = Counter()
        self._queue: list[_Waiting] = []

    @property
    def num_held(self) -> int:
        """Answers being written now."""
        return self._held.total()

    def has_room(self, owner: str) -> bool:
        """Return True if a place would be had at once."""
        is_free = self.num_held < self._settings.max_streams
        return is_free and self._held[owner] < self._settings.max_streams_each

    @asynccontextmanager
    async def place(self, owner: str, timeout_s: float, on_move: OnMove | None = None) -> AsyncIterator[float]:
        """Hold a place, after waiting for it; yields the seconds waited. `on_move` is told how many are before.

        Raises Overloaded if the queue is full, or no place became free in time.
        """
        started_s = time.monotonic()
        await self._enter(_Waiting(owner, on_move), timeout_s)
        try:
            yield time.monotonic() - started_s
        finally:
            self._leave(owner)

    async def _enter(self, waiting: _Waiting, timeout_s: float) -> None:
        self._queue.append(waiting)
        self._let_in()
        if not waiting.is_let_in.is_set() and len(self._queue) > self._settings.max_waiting:
            self._give_up(waiting)
            raise Overloaded(FULL.format(num_waiting=len(self._queue)))
        try:
            async with asyncio.timeout(timeout_s):
                await waiting.is_let_in.wait()
        except BaseException as error:
            self._give_up(waiting)
            if isinstance(error, TimeoutError):
                raise Overloaded(TOO_LONG.format(seconds=timeout_s)) from error
            raise

    def _give_up(self, waiting: _Waiting) -> None:
        """Forget who waits no more, also if they were let in at this moment."""
        if waiting.is_let_in.is_set():
            self._leave(waiting.owner)
        else:
            self._queue.remove(waiting)
            self._tell()

    def _leave(self, owner: str) -> None:
        self._held[owner] -= 1
        self._held += Counter()  # without those who hold none
        self._let_in()

    def _let_in(self) -> None:
        while self.num_held < self._settings.max_streams:
            entitled = [one for one in self._queue if self._held[one.owner] < self._settings.max_streams_each]
            if not entitled:
                break
            chosen = min(entitled, key=lambda one: self._held[one.owner])  # the first of these has waited longest
            self._queue.remove(chosen)
            self._held[chosen.owner] += 1
            chosen.is_let_in.set()
        self._tell()

    def _tell(self) -> None:
        self._on_change(self.num_held, len(self._queue))
        ordered = sorted(self._queue, key=lambda one: self._held[one.owner])  # as `_let_in` would choose them now
        for num_before, waiting in enumerate(ordered):
            if waiting.on_move is not None and waiting.num_before != num_before:
                waiting.num_before = num_before
                waiting.on_move(num_before)
