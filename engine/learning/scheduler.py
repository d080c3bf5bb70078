"""The queue of updates: one at a time, lessons before background tasks, consolidations last.

Owns the queue and the one worker task. Invariants: feedback is handed in after it is committed, so a lost process
loses nothing (`resume`); a retryable failure is tried again up to `MAX_ATTEMPTS` times, with a pause in which a dead
engine is noticed, then parked; one that finds no database waits for it; what a lesson left to be deepened comes before
all else, and is broken off by what its person asks for; a background task (preparing rollouts, probing
notes, consolidating) gives way to the next lesson and runs again after it; a consolidation waits for every other task,
and while consolidations are held; every change of a person's versions holds that person's turn; a cancelled lesson has
ended, in storage too, before its outcome is given; no failure ends the worker.
"""

import asyncio
import logging
import time
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol
from weakref import WeakValueDictionary

from engine.requests import LearnOutcome
from storage.errors import AWAY

logger = logging.getLogger(__name__)
MAX_ATTEMPTS = 3
RETRY_AFTER_S = 1.0  # longer than it takes to notice that the engine has died

TaskKind = Literal["rebuild", "settle", "foresee", "consolidate", "calibrate"]
LAST: tuple[TaskKind, ...] = ("foresee", "consolidate", "calibrate")  # behind all others, not while learning is paused
BackgroundTasks = dict[TaskKind, Callable[[str], Coroutine[None, None, None]]]
Prepare = Callable[[], Awaitable[None]]
Park = Callable[[str, str], Awaitable[LearnOutcome]]
GiveUp = Callable[[str], Awaitable[LearnOutcome]]


@dataclass(frozen=True)
class _Lesson:
    """A piece of feedback that waits for its update, or is in it."""

    user_id: str
    feedback_id: str
    outcome: "asyncio.Future[LearnOutcome]"
    submitted_s: float = field(default_factory=time.monotonic)


class Teaching(Protocol):
    """The updates of lessons."""

    async def learn(self, feedback_id: str) -> LearnOutcome:
        """Run the update of one piece of feedback."""

    async def deepen(self) -> None:
        """Run what the last one has left for when its outcome is known, if it has."""


class UpdateScheduler:
    """The queue of updates and the worker that runs them."""

    def __init__(
        self,
        prepare: Prepare,
        teaching: Teaching,
        tasks: BackgroundTasks,
        park: Park,
        give_up: GiveUp,
        *,
        retry_after_s: float = RETRY_AFTER_S,
    ) -> None:
        """`prepare` runs once, first; `tasks` run behind every lesson, those there are.


        `park(feedback_id, reason)` ends one that cannot be done, `give_up(feedback_id)` one that was cancelled.
        """
        self._retry_after_s = retry_after_s
        self._prepare = prepare
        self._teaching = teaching
        self._kinds = tasks
        self._park = park
        self._give_up = give_up
        self._deepening: tuple[str, asyncio.Task[None]] | None = None  # whose last lesson is deepened
        self._lessons: deque[_Lesson] = deque()
        self._waiting: dict[str, _Lesson] = {}  # and the one that runs
        self._lesson: tuple[str, asyncio.Task[LearnOutcome | Exception]] | None = None  # the one that runs
        self._tasks: dict[tuple[str, TaskKind], object] = {}  # in order; each submission has a token of its own
        self._endings: set[asyncio.Task[None]] = set()  # of lessons that were cancelled before they began
        self._turns: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        self._wake = asyncio.Event()
        self._idle = asyncio.Event()
        self._idle.set()
        self._running: asyncio.Task[None] | None = None
        self._is_held = False
        self._worker: asyncio.Task[None] | None = None
        self.num_failures = 0  # errors seen at this edge, for the metrics

    def start(self) -> None:
        """Start the worker task, which prepares the first update before anything else."""
        self._rouse()
        self._worker = asyncio.create_task(self._work(), name="heed-updates")

    async def stop(self) -> None:
        """End the worker; unfinished updates stay pending in storage."""
        if self._worker is not None:
            self._worker.cancel()
            await asyncio.gather(self._worker, return_exceptions=True)
        await asyncio.gather(*self._endings)
        for lesson in self._waiting.values():
            lesson.outcome.cancel()

    @property
    def num_waiting(self) -> int:
        """Lessons that have not ended."""
        return len(self._waiting)

    def submit(self, user_id: str, feedback_id: str) -> "asyncio.Future[LearnOutcome]":
        """Queue a committed correction; submitting it twice makes one update."""
        if feedback_id not in self._waiting:
            lesson = _Lesson(user_id, feedback_id, asyncio.get_running_loop().create_future())
            self._waiting[feedback_id] = lesson
            self._lessons.append(lesson)
            self._give_way()
        return self._waiting[feedback_id].outcome

    def place(self, feedback_id: str) -> tuple[int, float] | None:
        """Return how many lessons come before one and the seconds since it was submitted, or None if it has ended."""
        if feedback_id not in self._waiting:
            return None
        waited_s = time.monotonic() - self._waiting[feedback_id].submitted_s
        ids = [lesson.feedback_id for lesson in self._lessons]
        return (ids.index(feedback_id) + len(self._waiting) - len(ids) if feedback_id in ids else 0), waited_s

    async def cancel(self, feedback_id: str) -> LearnOutcome | None:
        """Stop a lesson that waits or runs. Return how it ended, or None if it does neither.

        One that ends at this very moment keeps its own outcome.
        """
        lesson = self._waiting.get(feedback_id)
        if lesson is None:
            return None
        if lesson in self._lessons:
            self._lessons.remove(lesson)
            ending = asyncio.create_task(self._end_unbegun(lesson), name="heed-cancelled-lesson")
            self._endings.add(ending)
            ending.add_done_callback(self._endings.discard)
        elif self._lesson is not None and self._lesson[0] == feedback_id:
            self._lesson[1].cancel()
        return await asyncio.shield(lesson.outcome)

    def submit_task(self, user_id: str, task: TaskKind = "settle") -> None:
        """Queue a background task behind every lesson; settling comes after rebuilding and after consolidating."""
        if task not in self._kinds:
            return
        if task in LAST:
            self._tasks[user_id, task] = object()  # one that waits keeps its place
            self._rouse()
            return
        self._tasks.pop((user_id, "settle"), None)
        self._tasks |= {(user_id, task): object(), (user_id, "settle"): object()}
        self._rouse()

    def hold(self, is_held: bool) -> None:
        """Begin no further consolidation or calibration and cancel the running one, or let them begin again."""
        self._is_held = is_held
        if is_held and self._running is not None and self._running.get_name() in map(_name, LAST):
            self._running.cancel()
        self._rouse()

    def turn(self, user_id: str) -> asyncio.Lock:
        """Return the lock for changes of a person's versions (lesson, rebuild, undo). It is granted in order."""
        return self._turns.setdefault(user_id, asyncio.Lock())

    @asynccontextmanager
    async def change(self, user_id: str) -> AsyncIterator[None]:
        """Have a person's turn for a change that they ask for; what deepens their last lesson is broken off."""
        if self._deepening is not None and self._deepening[0] == user_id:
            self._deepening[1].cancel()
        async with self.turn(user_id):
            yield

    def drop(self, user_id: str) -> None:
        """Drop everything that is queued for a person."""
        self._tasks = {key: token for key, token in self._tasks.items() if key[0] != user_id}
        self._give_way()
        for lesson in [lesson for lesson in self._lessons if lesson.user_id == user_id]:
            self._lessons.remove(lesson)
            self._waiting.pop(lesson.feedback_id).outcome.cancel()

    async def idle(self) -> None:
        """Return when nothing waits and nothing runs."""
        await self._idle.wait()

    def _give_way(self) -> None:
        if self._running is not None:
            self._running.cancel()
        self._rouse()

    def _rouse(self) -> None:
        self._idle.clear()
        self._wake.set()

    async def _work(self) -> None:
        await self._first()
        while True:
            if self._lessons:
                await self._one_lesson(self._lessons.popleft())
            elif (following := self._following()) is not None:
                await self._one_task(*following)
            else:
                self._wake.clear()
                self._idle.set()
                await self._wake.wait()

    def _following(self) -> tuple[str, TaskKind] | None:
        """Return the next task in order of submission; one of the last kinds only if nothing else waits."""
        others = (key for key in self._tasks if key[1] not in LAST)
        return next(others, None) or (None if self._is_held else next(iter(self._tasks), None))

    async def _first(self) -> None:
        try:
            await self._prepare()
        except Exception:  # a named edge: an update that finds nothing prepared prepares it itself
            self.num_failures += 1
            logger.warning("preparing the first update failed", exc_info=True)

    async def _one_lesson(self, lesson: _Lesson) -> None:
        task = asyncio.create_task(self._in_turn(lesson), name="heed-lesson")
        self._lesson = lesson.feedback_id, task
        try:
            await _over(task)
        finally:
            self._lesson = None
        self._end(lesson, await self._given_up(lesson.feedback_id) if task.cancelled() else task.result())
        await self._deepened(lesson.user_id)

    async def _deepened(self, user_id: str) -> None:
        """Teach the rest of a person's lesson, before anything else."""
        task = asyncio.create_task(self._rest(user_id), name="heed-deepening")
        self._deepening = user_id, task
        try:
            await _over(task)
        finally:
            self._deepening = None
        if not task.cancelled() and task.exception() is not None:
            self.num_failures += 1
            logger.warning("the rest of a lesson failed: its first version stays", exc_info=task.exception())

    async def _rest(self, user_id: str) -> None:
        async with self.turn(user_id):
            await self._teaching.deepen()

    async def _in_turn(self, lesson: _Lesson) -> LearnOutcome | Exception:
        async with self.turn(lesson.user_id):
            return await self._result(lesson.feedback_id)

    def _end(self, lesson: _Lesson, result: LearnOutcome | Exception) -> None:
        self._waiting.pop(lesson.feedback_id, None)
        _resolve(lesson.outcome, result)
        self.submit_task(lesson.user_id)

    async def _end_unbegun(self, lesson: _Lesson) -> None:
        """End a lesson that was cancelled while it waited, even if the one who asked for that has gone."""
        self._end(lesson, await self._given_up(lesson.feedback_id))

    async def _given_up(self, feedback_id: str) -> LearnOutcome | Exception:
        try:
            return await self._give_up(feedback_id)
        except Exception as error:  # a named edge: it stays open in storage, and is taken up by the next heed
            self.num_failures += 1
            logger.warning("feedback %s could not be given up", feedback_id, exc_info=True)
            return error

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
        """Make one attempt; while the database is away it does not count, and is repeated when that is back."""
        while True:
            try:
                return await self._teaching.learn(feedback_id)
            except AWAY as error:
                self.num_failures += 1
                logger.warning("update for %s waits: %s", feedback_id, error)
            await asyncio.sleep(self._retry_after_s)

    async def _one_task(self, user_id: str, kind: TaskKind) -> None:
        token = self._tasks[user_id, kind]
        self._running = asyncio.create_task(self._do(user_id, kind), name=_name(kind))
        try:
            await _over(self._running)
        finally:
            task, self._running = self._running, None
        if task.cancelled():
            return  # a lesson came first; the task stays queued
        if self._tasks.get((user_id, kind)) is token:  # else it was submitted again meanwhile
            del self._tasks[user_id, kind]
        if kind == "consolidate":
            self.submit_task(user_id)
        if task.exception() is not None:
            self.num_failures += 1
            logger.warning("a background task for a person failed", exc_info=task.exception())

    async def _do(self, user_id: str, kind: TaskKind) -> None:
        if kind == "settle":
            await self._kinds[kind](user_id)
            return
        async with self.turn(user_id):
            await self._kinds[kind](user_id)


async def _over(task: "asyncio.Task[Any]") -> None:
    """Wait for a task; cancelled, cancel that first and wait until its failure is in storage."""
    try:
        await asyncio.wait({task})
    except asyncio.CancelledError:
        task.cancel()
        await asyncio.wait({task})
        raise


def _name(kind: TaskKind) -> str:
    return f"heed-{kind}"


def _resolve(future: "asyncio.Future[LearnOutcome]", result: LearnOutcome | Exception) -> None:
    if future.done():
        return
    if isinstance(result, Exception):
        future.set_exception(result)
        future.exception()  # asyncio need not complain if no caller waits for it
    else:
        future.set_result(result)
