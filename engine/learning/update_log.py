"""The row of one update in the log and the time of its phases, for lessons and consolidations alike.

Invariant: a row that has ended is not ended again, so that an update that is cancelled while its last transaction is
under way keeps what that transaction said.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Any, Literal

from engine.host.trainer_client import Trained, finite_or_none
from engine.requests import LearnOutcome
from storage.database import Database, Session
from storage.errors import StorageError
from storage.kinds import FeedbackStatus, Meaning, NoteState, VersionState
from storage.learning import feedback, notes, updates, versions
from storage.tables import UpdateRun

Status = Literal["learned", "kept", "rejected"]
RecordFailure = Callable[[Session, str, str], None]  # in a session: the row's status and the reason
ROW_STATUS: dict[str, str] = {"learned": "accepted", "kept": "skipped", "rejected": "rejected"}
POSTPONED = "postponed"
_FEEDBACK_STATUS: dict[str, FeedbackStatus] = {
    "learned": FeedbackStatus.LEARNED,
    "kept": FeedbackStatus.KEPT,
    "rejected": FeedbackStatus.REJECTED,
}


@dataclass(kw_only=True)
class PhaseTimer:
    """Measures from its creation on how long each phase takes."""

    phases_ms: dict[str, float] = field(default_factory=dict)
    started_s: float = field(default_factory=time.perf_counter)
    on_lap: Callable[[str], None] | None = None  # told of each phase that has ended

    def lap(self, phase: str) -> None:
        """Add the time since the last lap to a phase."""
        since_last_ms = self.duration_ms - sum(self.phases_ms.values())
        self.phases_ms[phase] = self.phases_ms.get(phase, 0.0) + since_last_ms
        if self.on_lap is not None:
            self.on_lap(phase)

    @property
    def duration_ms(self) -> float:
        """Milliseconds since the timer was created."""
        return (time.perf_counter() - self.started_s) * 1e3


def finish(s: Session, run_id: str, status: Status, trained: Trained, **fields: Any) -> None:
    """Write into the row how an update ended; `fields` are further columns of the row."""
    updates.finish(
        s,
        run_id,
        status=ROW_STATUS[status],
        steps=trained.steps,
        divergence_before=finite_or_none(trained.divergence_before),
        divergence_after=finite_or_none(trained.divergence_after),
        curves=trained.curves or None,
        **fields,
    )


def record(s: Session, outcome: LearnOutcome, trained: Trained, version: int | None = None) -> None:
    """Write how a lesson ended into its row, its feedback and its note, in one transaction."""
    assert outcome.update_id is not None
    assert outcome.status != "queued"
    assert outcome.status != "cancelled"  # nothing is recorded here but what ended by itself
    finish(
        s,
        outcome.update_id,
        outcome.status,
        trained,
        duration_ms=outcome.duration_ms,
        phases_ms=outcome.phases_ms,
        gate=outcome.gate or None,
        heat=outcome.heat,
        version=version,
        error=outcome.reason,
    )
    feedback.set_status(s, outcome.feedback_id, _FEEDBACK_STATUS[outcome.status], outcome.reason)
    if outcome.note_id is not None and outcome.status != "learned":
        waits = outcome.status == "kept" and outcome.reading == Meaning.FACT  # until it is asked about
        notes.set_state(s, outcome.note_id, NoteState.WHEN_ASKED if waits else NoteState.IN_PROMPT)


def fail(s: Session, run: UpdateRun, status: str, reason: str, duration_ms: float) -> bool:
    """Write into the row that an update could not finish, and reject its candidate. Return False if it had ended."""
    if updates.get(s, run.user_id, run.id).status != "running":
        return False
    updates.finish(s, run.id, status=status, duration_ms=duration_ms, error=reason)
    for version in versions.history(s, run.user_id):
        if version.update_id == run.id and version.state == VersionState.CANDIDATE:
            versions.reject(s, version.user_id, version.number)
    return True


@asynccontextmanager
async def failures_recorded(
    database: Database, record: RecordFailure, *, cancelled_as: str = "failed"
) -> AsyncIterator[None]:
    """Record an error or a cancellation that ends the block, and raise it again."""
    try:
        yield
    except (Exception, asyncio.CancelledError) as error:
        status = cancelled_as if isinstance(error, asyncio.CancelledError) else "failed"
        reason = str(error) or ("it gave way" if status == POSTPONED else type(error).__name__)
        with suppress(StorageError):  # it would hide the error, or the cancellation; the next start ends the row
            await database.write(lambda s: record(s, status, reason))
        raise
