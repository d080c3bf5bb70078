"""The ends of feedback that no update decided: kept, parked, cancelled, and what storage says of one that had ended.

Invariant: feedback that has ended keeps its status.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Literal, NamedTuple

from engine.adapters import superseding
from engine.requests import LearnOutcome
from engine.samples.notes import num_tokens
from storage.database import Database, Session
from storage.errors import without_folders
from storage.kinds import FeedbackStatus, NoteState
from storage.learning import feedback, notes, updates
from storage.people import people
from storage.tables import Feedback, Note

LEARNING_IS_OFF = "Learning is off; /learning on turns it on."
WAITS = "I keep this in mind for when it is asked about."
OPEN = (FeedbackStatus.PENDING, FeedbackStatus.TRAINING)
_ENDED: dict[str, Literal["learned", "kept", "rejected", "cancelled"]] = {
    FeedbackStatus.LEARNED: "learned",
    FeedbackStatus.KEPT: "kept",
    FeedbackStatus.UNDONE: "kept",
    FeedbackStatus.REJECTED: "rejected",
    FeedbackStatus.FAILED: "rejected",
    FeedbackStatus.CANCELLED: "cancelled",
}


class NoteWords(NamedTuple):
    """The text of a note, and whether it is shown with every question or with those that call it up."""

    text: str
    state: NoteState = NoteState.IN_PROMPT


def of_row(row: Feedback, version: int) -> LearnOutcome:
    """Return what storage says of feedback that has ended; `version` is active."""
    return LearnOutcome(
        row.id, _ENDED[row.status], version, reason=row.reason, reading=row.reading, is_unsure=row.is_unsure
    )


def refused(reason: str, *, has_note: bool) -> str:
    """Return why nothing was learned, for the person to read."""
    kept = " It stays as a note in the prompt." if has_note else ""
    return f"{reason} A gentler second try did no better.{kept}"


async def keep(database: Database, row: Feedback, version: int, reason: str) -> LearnOutcome:
    """End feedback that needs no update; `reason` is a sentence for the person, or empty."""
    return of_row(await database.write(lambda s: _kept(s, row, reason)), version)


async def keep_note(
    database: Database, row: Feedback, version: int, words: NoteWords, count: Callable[[str], int], reason: str = ""
) -> LearnOutcome:
    """Put a note of what a person wrote into their prompts; `count` returns a text's tokens.

    Done again after a crash, it is the same note.
    """
    new = Note(
        user_id=row.user_id,
        feedback_id=row.id,
        text=words.text,
        state=words.state,
        num_tokens=num_tokens(words.text, count),
    )

    def noted(s: Session) -> LearnOutcome:
        is_open = feedback.get(s, row.id).status in OPEN
        known = next(iter(notes.by_feedback(s, row.user_id, row.id)), None)
        note = superseding.add(s, new) if is_open and known is None else known
        ended = _kept(s, row, reason or (WAITS if words.state == NoteState.WHEN_ASKED else ""))
        outcome = of_row(ended, version)
        if note is None:
            return outcome
        older = [wish.text for wish in superseding.replaced_by(s, note)]
        return replace(outcome, note=note.text, note_id=note.id, replaced=older)

    return await database.write(noted)


def _kept(s: Session, row: Feedback, reason: str) -> Feedback:
    """End feedback that is still open. Return the stored row."""
    stored = feedback.get(s, row.id)
    return feedback.set_status(s, row.id, FeedbackStatus.KEPT, reason) if stored.status in OPEN else stored


def interrupted(s: Session, max_attempts: int, user_id: str | None = None) -> list[Feedback]:
    """End the updates that died with an earlier heed. Return the feedback that waits for one.

    Of one person, or of everybody at start.
    """
    updates.fail_interrupted(s, user_id)
    notes.requeue_interrupted(s, user_id)
    feedback.requeue_interrupted(s, max_attempts=max_attempts, user_id=user_id)
    return feedback.pending(s, user_id)


async def park(database: Database, feedback_id: str, reason: str) -> LearnOutcome:
    """Give an update up after its last attempt; an admin finds it among the failed ones."""
    row = await database.write(lambda s: feedback.set_status(s, feedback_id, FeedbackStatus.FAILED, reason))
    version = await database.read(lambda s: people.get(s, row.user_id).active_version)
    return LearnOutcome(
        feedback_id, "rejected", version, reason=f"The update failed: {without_folders(reason).rstrip('.')}."
    )


async def cancel(database: Database, feedback_id: str) -> LearnOutcome:
    """End feedback whose lesson was stopped, and delete its note. Raises FeedbackNotFound."""

    def ended(s: Session) -> tuple[Feedback, int]:
        row = feedback.get(s, feedback_id)
        if row.status in OPEN:
            updates.cancel(s, feedback_id)
            for note in notes.by_feedback(s, row.user_id, feedback_id):
                notes.set_state(s, note.id, NoteState.DELETED)
            superseding.bring_back(s, row.user_id)
            feedback.set_status(s, feedback_id, FeedbackStatus.CANCELLED)
        return row, people.get(s, row.user_id).active_version

    return of_row(*await database.write(ended))
