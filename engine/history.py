"""Going back and forth between a person's versions, notes and feedback together.

Every function runs inside one transaction. Invariant: after it, the lessons in force are exactly those on the path
from the zero adapter to the active version, plus notes that never had a version; notes go back into the prompt and
the next probe decides which of them the weights hold.
"""

from dataclasses import dataclass

from storage import feedback, people, versions
from storage import notes as note_rows
from storage.database import Session
from storage.tables import AdapterVersion, FeedbackStatus, Note, NoteState


class NothingToUndo(LookupError):
    """The person has no lesson left to take back."""


@dataclass(frozen=True)
class UndoResult:
    """What is active after an undo, and the note that went with the lesson."""

    version: int
    note: str | None = None


def undo(s: Session, user_id: str) -> UndoResult:
    """Takes back the newest lesson: a note that came after the active version, else the version with its note.

    Raises NothingToUndo.
    """
    active = people.get(s, user_id).active_version
    version = versions.get(s, user_id, active) if active else None
    newest = _newest_note(s, user_id)
    if newest is not None and (version is None or newest.created_at > version.created_at):
        _take_back(s, newest)
        return UndoResult(active, newest.text)
    if version is None:
        raise NothingToUndo("there is no lesson to take back")
    taught = _note_of(s, version)
    return_to(s, user_id, version.parent)
    return UndoResult(version.parent, taught.text if taught else None)


def delete_note(s: Session, user_id: str, note_id: str) -> bool:
    """Takes a note out of force; returns whether an update was taught it. Raises NoteNotFound."""
    note = note_rows.get(s, user_id, note_id)
    note_rows.set_state(s, note.id, NoteState.DELETED)
    taught = {v.feedback_id for v in _path(s, user_id, people.get(s, user_id).active_version)}
    return note.learned_version is not None or note.feedback_id in taught - {None}


def return_to(s: Session, user_id: str, number: int) -> None:
    """Makes an accepted version active (0: the base); lessons off its path are taken back, those on it hold again.

    Raises VersionNotFound, VersionStateError.
    """
    left, kept = _path(s, user_id, people.get(s, user_id).active_version), _path(s, user_id, number)
    versions.activate(s, user_id, number)
    for version in (v for v in left if v.number not in {k.number for k in kept}):
        _set_lesson(s, version, FeedbackStatus.UNDONE, NoteState.DELETED)
    for version in kept:
        _set_lesson(s, version, FeedbackStatus.LEARNED, NoteState.IN_PROMPT)
    for note in note_rows.in_state(s, user_id, NoteState.SUPERSEDED):
        note_rows.set_state(s, note.id, NoteState.IN_PROMPT)


def _path(s: Session, user_id: str, number: int) -> list[AdapterVersion]:
    path = []
    while number:
        version = versions.get(s, user_id, number)
        path.append(version)
        number = version.parent
    return path


def _set_lesson(s: Session, version: AdapterVersion, status: FeedbackStatus, state: NoteState) -> None:
    if version.feedback_id is not None:
        feedback.set_status(s, version.feedback_id, status)
    note = _note_of(s, version)
    if note is not None:
        note_rows.set_state(s, note.id, state)


def _note_of(s: Session, version: AdapterVersion) -> Note | None:
    if version.feedback_id is None:
        return None
    return next(iter(note_rows.by_feedback(s, version.user_id, version.feedback_id)), None)


def _newest_note(s: Session, user_id: str) -> Note | None:
    live = note_rows.live(s, user_id)
    return live[-1] if live else None


def _take_back(s: Session, note: Note) -> None:
    note_rows.set_state(s, note.id, NoteState.DELETED)
    if note.feedback_id is not None:
        feedback.set_status(s, note.feedback_id, FeedbackStatus.UNDONE)
