"""An engine among others on one database: it changes only people whose lease it holds.

Anyone's questions are answered by any engine, from the version that is active in the database at that moment. What
changes a person's versions, notes or lessons is done by the holder of their lease; another engine says who that is.
"""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from functools import partial
from typing import TypeVar

from engine.adapters.zip_format import AdapterPackage
from engine.config import EngineConfig
from engine.engine import Engine, Progress
from engine.learning import endings
from engine.learning.candidates import give_up_unfinished
from engine.learning.scheduler import MAX_ATTEMPTS
from engine.requests import ConsolidationOutcome, EngineLoad, LearnOutcome, UndoResult
from storage.database import Database, Session
from storage.errors import LeaseLost
from storage.fencing import Tokens
from storage.learning import feedback
from storage.lease_keeper import DURATION_S, LeaseKeeper
from storage.tables import Feedback

T = TypeVar("T")


class ClusterEngine(Engine):
    """One of several engines. Every call about a person raises LeaseHeld where another engine has them."""

    def __init__(self, config: EngineConfig, database: Database, tokens: Tokens, lease_s: float = DURATION_S) -> None:
        """`database` was entered with the same `tokens`."""
        super().__init__(config, database)
        self.leases = LeaseKeeper(database, tokens, self._take_over, self._let_go, lease_s)
        self._renewing: asyncio.Task[None] | None = None

    async def start(self, progress: Progress = lambda _line: None) -> None:
        """See Engine."""
        await super().start(progress)
        self._schedule.is_ours = self._is_ours
        self._renewing = asyncio.create_task(self.leases.watch(), name="heed-leases")

    async def stop(self) -> None:
        """See Engine. Its people are free at once."""
        await super().stop()
        if self._renewing is not None:
            self._renewing.cancel()
            await asyncio.gather(self._renewing, return_exceptions=True)
        await self.leases.release()

    async def resume_pending(self) -> int:
        """Take up nothing: what waits for a person is taken up with their lease."""
        return 0

    async def take_up(self, user_id: str) -> None:
        """Have a person's lease, and with it what waits for them."""
        await self.leases.hold(user_id, user_id)

    def loads(self) -> dict[str, EngineLoad]:
        """See Engine; with the people whose leases it holds."""
        of_people = {"num_people": len(self.leases.held), "num_taken_over": self.leases.num_taken}
        return {name: replace(load, **of_people) for name, load in super().loads().items()}

    # -- calls about one person ----------------------------------------------------------------------------------------

    async def learn(self, feedback_id: str) -> LearnOutcome:
        """See Engine."""
        return await self._about(feedback_id, super().learn)

    async def cancel_lesson(self, feedback_id: str) -> LearnOutcome:
        """See Engine."""
        return await self._about(feedback_id, super().cancel_lesson)

    async def consolidate(self, user_id: str) -> ConsolidationOutcome:
        """See Engine."""
        return await self._as_holder(user_id, partial(super().consolidate, user_id))

    async def rebuild(self, user_id: str) -> ConsolidationOutcome:
        """See Engine."""
        return await self._as_holder(user_id, partial(super().rebuild, user_id))

    async def undo(self, user_id: str) -> UndoResult:
        """See Engine."""
        return await self._as_holder(user_id, partial(super().undo, user_id))

    async def take_back(self, complaint: Feedback, version: int, reason: str) -> UndoResult | None:
        """See Engine."""
        return await self._as_holder(complaint.user_id, partial(super().take_back, complaint, version, reason))

    async def rollback(self, user_id: str, version: int) -> int:
        """See Engine."""
        return await self._as_holder(user_id, partial(super().rollback, user_id, version))

    async def delete_note(self, user_id: str, note_id: str) -> None:
        """See Engine."""
        await self._as_holder(user_id, partial(super().delete_note, user_id, note_id))

    async def forget(self, user_id: str) -> None:
        """See Engine."""
        await self._as_holder(user_id, partial(super().forget, user_id))
        self.leases.lose(user_id)

    async def unlearn(self, user_id: str) -> None:
        """See Engine."""
        await self._as_holder(user_id, partial(super().unlearn, user_id))

    async def import_adapter(self, user_id: str, package: AdapterPackage) -> int:
        """See Engine."""
        return await self._as_holder(user_id, partial(super().import_adapter, user_id, package))

    async def _about(self, feedback_id: str, do: Callable[[str], Awaitable[T]]) -> T:
        row = await self._database.read(lambda s: feedback.get(s, feedback_id))
        return await self._as_holder(row.user_id, partial(do, feedback_id))

    async def _as_holder(self, user_id: str, do: Callable[[], Awaitable[T]]) -> T:
        """Do something with a person's lease. Where it was lost on the way, another engine does it: LeaseHeld."""
        await self.leases.hold(user_id, user_id)
        try:
            return await do()
        except LeaseLost:
            pass
        except asyncio.CancelledError:  # of this call, or of a lesson that was let go
            if _is_being_cancelled() or user_id in self.leases.held:
                raise
        self.leases.lose(user_id)
        await self.leases.hold(user_id, user_id)
        return await do()

    # -- people who come and go ----------------------------------------------------------------------------------------

    def _is_ours(self, user_id: str) -> bool:
        return user_id in self.leases.held

    async def _take_over(self, user_id: str) -> None:
        """Go on with a person: give up what another engine left unfinished, take up what waits."""

        def interrupted(s: Session) -> list[Feedback]:
            give_up_unfinished(s, user_id)
            return endings.interrupted(s, MAX_ATTEMPTS, user_id)

        for row in await self._database.write(interrupted):
            await self._take_up(row)
        if await self._schedule.resume(user_id):
            self._submit_consolidation(user_id)

    def _let_go(self, user_id: str) -> None:
        """Forget what waits for a person; it waits in the database, for the engine that has them now."""
        self._scheduler.drop(user_id)
        self._schedule.drop(user_id)
        self._rebuilds.drop(user_id)


def _is_being_cancelled() -> bool:
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0
