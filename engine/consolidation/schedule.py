"""The schedule of consolidations ("sleep"): at night and while no one talks, or on request.

Owns the decision and the handling of failures; `engine.consolidation.consolidator` does the work. Invariants: a person
has at most one a night without a request, and the person who waited longest comes first; a cooldown follows a failure,
and several in a row a break that ends by itself; one that broke off is tried again, also after a restart, and then
parked for an admin to see; each decision is made from storage and the clock of that moment, so that neither a restart
nor a clock that jumps can block it for good.
"""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Sequence
from datetime import UTC, datetime

from engine.config import ConsolidationConfig
from engine.config.window import Window
from engine.consolidation.waiters import Waiters
from engine.learning.scheduler import MAX_ATTEMPTS, RETRY_AFTER_S
from engine.requests import ConsolidationOutcome
from storage.database import Database, Session
from storage.learning import signals, updates
from storage.people import people
from storage.tables import UpdateRun

logger = logging.getLogger(__name__)

PAUSED = "Learning is paused."
_FAILURES = ("rejected", "parked")

Clock = Callable[[], float]
Consolidate = Callable[[str], Awaitable[ConsolidationOutcome]]


class ConsolidationSchedule:
    """Decides whose consolidation runs when; the scheduler runs it as a task behind everything else."""

    def __init__(
        self,
        config: ConsolidationConfig,
        database: Database,
        consolidate: Consolidate,
        is_idle: Callable[[], bool],
        *,
        clock: Clock = time.time,
        retry_after_s: float = RETRY_AFTER_S,
    ) -> None:
        """Keep the parts; `is_idle` returns True if no answer was given for a while, `clock` UTC seconds."""
        self._config = config
        self._database = database
        self._consolidate = consolidate
        self._is_idle = is_idle
        self._clock = clock
        self._retry_after_s = retry_after_s
        self._asked = Waiters[ConsolidationOutcome]()
        self.is_paused = False
        self.is_ours: Callable[[str], bool] = lambda _user_id: True  # in a cluster: a person whom this engine teaches
        self.num_failures = 0  # errors seen at these edges, for the metrics

    def ask(self, user_id: str) -> "asyncio.Future[ConsolidationOutcome]":
        """Return a future of one that runs at any hour; a second request gets the same future.

        Submit the task after it.
        """
        return self._asked.ask(user_id)

    def drop(self, user_id: str | None = None) -> None:
        """Drop the waiters of a person who is gone, or all of them."""
        self._asked.drop(user_id)

    async def watch(self, submit: Callable[[str], None]) -> None:
        """Submit each person whose turn has come, until cancelled."""
        while True:
            await asyncio.sleep(self._config.look_every_s)
            try:
                user_id = await self.due()
            except Exception:  # a named edge: one look that fails must not be the last one
                self.num_failures += 1
                logger.warning("looking for what to consolidate failed", exc_info=True)
                continue
            if user_id is not None:
                submit(user_id)

    async def due(self) -> str | None:
        """Return the person whose turn it is, or None."""
        config = self._config
        if not config.is_nightly or self.is_paused or not self._is_night() or not self._is_idle():
            return None
        for waiting in await self._database.read(lambda s: signals.waiting(s, config.min_new)):
            if self.is_ours(waiting.user_id) and not await self._against(waiting.user_id, is_asked=False):
                return waiting.user_id
        return None

    async def run(self, user_id: str) -> None:
        """Run one consolidation, unless something stands against it by now. May be cancelled at any time."""
        is_asked = user_id in self._asked
        if not is_asked and not self._is_idle():
            return  # people talk again: the next look finds this person once more
        try:
            reason = await self._against(user_id, is_asked=is_asked)
            if not reason:
                self._asked.answer(user_id, await self._attempts(user_id))
            elif is_asked:
                self._asked.answer(user_id, ConsolidationOutcome("kept", await self._active_version(user_id), reason))
        except Exception:
            self.drop(user_id)  # no caller waits for ever; the scheduler counts it
            raise

    async def resume(self, user_id: str | None = None) -> list[str]:
        """Ask again for the consolidations that a restart broke off, and return their people; park the others.

        Of one person, or of everybody at start.
        """
        again = await self._database.write(lambda s: _resumed(s, user_id))
        for waiting in again:
            self.ask(waiting)
        return again

    async def _against(self, user_id: str, *, is_asked: bool) -> str:
        found = await self._database.read(lambda s: signals.runs(s, user_id))
        return against(self._clock(), found, self._config, is_asked=is_asked)

    async def _attempts(self, user_id: str) -> ConsolidationOutcome:
        number = 0
        while True:
            try:
                return await self._consolidate(user_id)
            except Exception as error:  # a named edge: what breaks off is tried again, then parked
                self.num_failures += 1
                reason, is_retryable = str(error) or type(error).__name__, getattr(error, "retryable", False)
                logger.warning("a consolidation failed: %s", reason, exc_info=True)
            found = await self._database.read(lambda s: signals.runs(s, user_id))
            number = max(number + 1, attempts(found))
            if not is_retryable or number >= MAX_ATTEMPTS:
                break
            await asyncio.sleep(self._retry_after_s * number)
        await self._database.write(lambda s: _park(s, user_id, reason))
        return ConsolidationOutcome(
            "rejected", await self._active_version(user_id), f"It failed: {reason.rstrip('.')}."
        )

    async def _active_version(self, user_id: str) -> int:
        return await self._database.read(lambda s: people.get(s, user_id).active_version)

    def _is_night(self) -> bool:
        return Window.parse(self._config.window).night(_local(self._clock())) is not None


def against(now_s: float, runs: Sequence[UpdateRun], config: ConsolidationConfig, *, is_asked: bool) -> str:
    """Return the reason against a consolidation now as a sentence, empty if there is none; `runs`: newest first.

    A failure that lies in the future, because the clock has jumped, is not counted.
    """
    ended = [run for run in runs if run.status in signals.ENDED]
    if _failures_in_a_row(now_s, ended, config) >= config.max_failures:
        days = config.failure_age_s / 86_400
        return f"The last {config.max_failures} consolidations failed; the next may begin {days:g} days after them."
    if is_asked:
        return ""
    window = Window.parse(config.window)
    night = window.night(_local(now_s))
    if night is None:
        return f"It is not night ({config.window})."
    if ended and window.night(_local(ended[0].started_at)) == night:
        return "There was one this night."
    if ended and ended[0].status in _FAILURES and 0 <= now_s - ended[0].started_at < config.cooldown_s:
        return "The last one failed not long ago."
    return ""


def attempts(runs: Sequence[UpdateRun]) -> int:
    """Return how often the current consolidation broke off (`runs`: newest first); giving way does not count."""
    number = 0
    for run in runs:
        if run.status in signals.ENDED:
            break
        number += run.status in ("running", "failed")
    return number


def _failures_in_a_row(now_s: float, ended: Sequence[UpdateRun], config: ConsolidationConfig) -> int:
    number = 0
    for run in ended:
        if run.status not in _FAILURES:
            break
        number += 0 <= now_s - run.started_at < config.failure_age_s
    return number


def _local(at_s: float) -> datetime:
    return datetime.fromtimestamp(at_s, UTC).astimezone()


def _resumed(s: Session, user_id: str | None) -> list[str]:
    again = []
    for run in signals.unfinished(s, user_id):
        if attempts(signals.runs(s, run.user_id)) >= MAX_ATTEMPTS:
            updates.finish(s, run.id, status="parked")
        else:
            again.append(run.user_id)
    return again


def _park(s: Session, user_id: str, reason: str) -> None:
    """Give the newest one up; create its row if it never got one."""
    newest = next(iter(signals.runs(s, user_id)), None)
    if newest is None or newest.status in signals.ENDED:
        newest = updates.start(s, UpdateRun(user_id=user_id, kind=signals.CONSOLIDATION))
    updates.finish(s, newest.id, status="parked", error=reason)
