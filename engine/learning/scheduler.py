"""Which update runs next: one at a time, corrections before chores, consolidations last.

Owns the queue and the one worker task. Invariants: feedback is handed in after it is committed, so a lost process
loses nothing (`resume`); a retryable failure is tried again up to `MAX_ATTEMPTS` times, with a pause in which a dead
engine is noticed, then parked; one that finds no database waits for it; a chore (preparing rollouts, probing notes,
consolidating) gives way to the next correction and is done again after it; a consolidation waits for every other
chore, and while it is held; whatever changes a person's versions holds that person's turn; no failure ends the worker.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine
from typing import Literal
from weakref import WeakValueDictionary

from engine.requests import LearnOutcome
from storage.errors import AWAY

logger = logging.getLogger(__name__)
MAX_ATTEMPTS = 3
RETRY_AFTER_S = 1.0  # longer than it takes to notice that the engine has died

Learn = Callable[[str], Awaitable[LearnOutcome]]
Chore = Literal["rebuild", "settle", "consolidate"]
Chores = dict[Chore, Callable[[str], Coroutine[None, None, None]]]
Prepare = Callable[[], Awaitable[None]]
Park = Callable[[str, str], Awaitable[LearnOutcome]]


class UpdateScheduler:
    """The queue of updates and the task that works it off."""

    def __init__(
        self, prepare: Prepare, learn: Learn, chores: Chores, park: Park, *, retry_after_s: float = RETRY_AFTER_S
    ) -> None:
        """`prepare` runs once, first; `learn` runs one update; `chores` run behind every lesson.

        `park(feedback_id, reason)` gives an update up.
        """
        self._retry_after_s = retry_after_s
        self._prepare = prepare
        self._learn = learn
        self._kinds = chores
        self._park = park
        self._lessons: deque[tuple[str, str, asyncio.Future[LearnOutcome]]] = deque()
        self._waiting: dict[str, asyncio.Future[LearnOutcome]] = {}
        self._chores: dict[tuple[str, Chore], None] = {}  # in order of asking
        self._turns: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        self._wake = asyncio.Event()
        self._idle = asyncio.Event()
        self._idle.set()
        self._chore: asyncio.Task[None] | None = None
        self._is_held = False
        self._worker: asyncio.Task[None] | None = None
        self.num_failures = 0  # errors seen at this edge, for the metrics

    def start(self) -> None:
        """Starts the worker task."""
        self._worker = asyncio.create_task(self._work(), name="heed-updates")

    async def stop(self) -> None:
        """Ends the worker; what is not finished stays pending in storage."""
        if self._worker is not None:
            self._worker.cancel()
            await asyncio.gather(self._worker, return_exceptions=True)
        for future in self._waiting.values():
            future.cancel()

    @property
    def num_waiting(self) -> int:
        """Lessons that have not ended."""
        return len(self._waiting)

    def submit(self, user_id: str, feedback_id: str) -> "asyncio.Future[LearnOutcome]":
        """Queues a committed correction; the same one twice is one update."""
        if feedback_id not in self._waiting:
            future: asyncio.Future[LearnOutcome] = asyncio.get_running_loop().create_future()
            self._waiting[feedback_id] = future
            self._lessons.append((user_id, feedback_id, future))
            self._give_way()
        return self._waiting[feedback_id]

    def submit_chore(self, user_id: str, chore: Chore = "settle") -> None:
        """Queues a chore behind every lesson; settling comes after rebuilding and after consolidating."""
        if chore == "consolidate":
            self._chores.setdefault((user_id, chore))
            self._rouse()
            return
        self._chores.pop((user_id, "settle"), None)
        self._chores |= {(user_id, chore): None, (user_id, "settle"): None}
        self._rouse()

    def hold(self, is_held: bool) -> None:
        """Begins no consolidation any more and ends the one that runs, or lets them begin again."""
        self._is_held = is_held
        if is_held and self._chore is not None and self._chore.get_name() == _name("consolidate"):
            self._chore.cancel()
        self._rouse()

    def turn(self, user_id: str) -> asyncio.Lock:
        """Held by whatever changes a person's versions: a lesson, a rebuild, an undo. Those who wait go in order."""
        return self._turns.setdefault(user_id, asyncio.Lock())

    def drop(self, user_id: str) -> None:
        """Forgets what waits for a person who is gone."""
        self._chores = {key: None for key in self._chores if key[0] != user_id}
        self._give_way()
        for lesson in [item for item in self._lessons if item[0] == user_id]:
            self._lessons.remove(lesson)
            self._waiting.pop(lesson[1]).cancel()

    async def idle(self) -> None:
        """Returns when nothing waits and nothing runs."""
        await self._idle.wait()

    def _give_way(self) -> None:
        if self._chore is not None:
            self._chore.cancel()
        self._rouse()

    def _rouse(self) -> None:
        self._idle.clear()
        self._wake.set()

    async def _work(self) -> None:
        await self._first()
        while True:
            if self._lessons:
                await self._one_lesson(*self._lessons.popleft())
            elif (following := self._following()) is not None:
                await self._one_chore(*following)
            else:
                self._wake.clear()
                self._idle.set()
                await self._wake.wait()

    def _following(self) -> tuple[str, Chore] | None:
        """The next chore, in order of asking; a consolidation only where nothing else waits."""
        others = (key for key in self._chores if key[1] != "consolidate")
        return next(others, None) or (None if self._is_held else next(iter(self._chores), None))

    async def _first(self) -> None:
        try:
            await self._prepare()
        except Exception:  # a named edge: an update that finds nothing prepared prepares it itself
            self.num_failures += 1
            logger.warning("preparing the first update failed", exc_info=True)

    async def _one_lesson(self, user_id: str, feedback_id: str, future: "asyncio.Future[LearnOutcome]") -> None:
        async with self.turn(user_id):
            result = await self._result(feedback_id)
        self._waiting.pop(feedback_id, None)
        _end(future, result)
        self.submit_chore(user_id)

    async def _result(self, feedback_id: str) -> LearnOutcome | Exception:
        try:
            return await self._attempts(feedback_id)
        except Exception as error:  # a named edge: it could not even be given up, and stays open in storage
            self.num_failures += 1
            logger.warning("feedback %s stays open", feedback_id, exc_info=True)
            return error

    async def _attempts(self, feedback_id: str) -> LearnOutcome:
        reason = ""
        for attempt in range(1, MAX_ATTEMPTS + 1):
            try:
                return await self._learn_once(feedback_id)
            except Exception as error:
                self.num_failures += 1
                reason = str(error) or type(error).__name__
                logger.warning("update for %s failed: %s", feedback_id, reason, exc_info=True)
                if not getattr(error, "retryable", False):
                    break
            if attempt < MAX_ATTEMPTS:
                await asyncio.sleep(self._retry_after_s * attempt)
        return await self._park(feedback_id, reason)

    async def _learn_once(self, feedback_id: str) -> LearnOutcome:
        """One attempt; one that the database was away for does not count, and is made when it is back."""
        while True:
            try:
                return await self._learn(feedback_id)
            except AWAY as error:
                self.num_failures += 1
                logger.warning("update for %s waits: %s", feedback_id, error)
            await asyncio.sleep(self._retry_after_s)

    async def _one_chore(self, user_id: str, kind: Chore) -> None:
        self._chore = asyncio.create_task(self._do(user_id, kind), name=_name(kind))
        try:
            await asyncio.wait({self._chore})
        except asyncio.CancelledError:
            self._chore.cancel()
            raise
        finally:
            chore, self._chore = self._chore, None
        if chore.cancelled():
            return  # a lesson came first; the chore stays queued
        self._chores.pop((user_id, kind), None)
        if kind == "consolidate":
            self.submit_chore(user_id)
        if chore.exception() is not None:
            self.num_failures += 1
            logger.warning("chores for a person failed", exc_info=chore.exception())

    async def _do(self, user_id: str, kind: Chore) -> None:
        if kind == "settle":
            await self._kinds[kind](user_id)
            return
        async with self.turn(user_id):
            await self._kinds[kind](user_id)


def _name(kind: Chore) -> str:
    return f"heed-{kind}"


def _end(future: "asyncio.Future[LearnOutcome]", result: LearnOutcome | Exception) -> None:
    if future.done():
        return
    if isinstance(result, Exception):
        future.set_exception(result)
        future.exception()  # asyncio need not complain where nobody waits for it
    else:
        future.set_result(result)
