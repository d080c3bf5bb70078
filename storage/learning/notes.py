"""Standing notes: what a person wants to hold for every answer. The newest wins where two disagree."""

from sqlmodel import Session, col, select

from storage.errors import FeedbackNotFound, NoteNotFound
from storage.kinds import Meaning, NoteState
from storage.learning import feedback as feedbacks
from storage.learning.versions import check_lease
from storage.tables import Feedback, Note, copy_of

LIVE = (NoteState.IN_PROMPT, NoteState.WHEN_ASKED, NoteState.LEARNING, NoteState.IN_WEIGHTS)


def add(s: Session, note: Note) -> Note:
    """Store a note and return the stored row; the row given is not touched.

    Raises FeedbackNotFound if the feedback it came from is not that person's.
    """
    if note.feedback_id is not None and feedbacks.get(s, note.feedback_id).user_id != note.user_id:
        raise FeedbackNotFound(f"no feedback {note.feedback_id!r}")
    row = copy_of(note)
    s.add(row)
    s.flush()
    return row


def get(s: Session, user_id: str, note_id: str) -> Note:
    """Return a note of this person. Raises NoteNotFound."""
    note = s.exec(select(Note).where(Note.id == note_id, Note.user_id == user_id)).first()
    if note is None:
        raise NoteNotFound(f"no note {note_id!r}")
    return note


def live(s: Session, user_id: str) -> list[Note]:
    """Return the person's notes that hold, wherever they live now, oldest first."""
    query = select(Note).where(Note.user_id == user_id, col(Note.state).in_(LIVE))
    return list(s.exec(query.order_by(col(Note.seq))))


def facts(s: Session, user_id: str) -> set[str]:
    """Return the ids of a person's notes whose words were surely read as a fact, and not said to be a wish."""
    query = select(Note.id).join(Feedback, col(Note.feedback_id) == col(Feedback.id)).where(Note.user_id == user_id)
    is_fact = (Feedback.reading == Meaning.FACT, col(Feedback.is_unsure).is_(False), Feedback.scope == "")
    return set(s.exec(query.where(*is_fact)))


def in_state(s: Session, user_id: str, state: NoteState) -> list[Note]:
    """Return the person's notes in one state, oldest first."""
    query = select(Note).where(Note.user_id == user_id, Note.state == state)
    return list(s.exec(query.order_by(col(Note.seq))))


def by_feedback(s: Session, user_id: str, feedback_id: str) -> list[Note]:
    """Return the person's notes that came from a piece of feedback, in any state, oldest first."""
    query = select(Note).where(Note.user_id == user_id, Note.feedback_id == feedback_id)
    return list(s.exec(query.order_by(col(Note.seq))))


def set_state(
    s: Session, note_id: str, state: NoteState, *, probe: float | None = None, learned_version: int | None = None
) -> Note:
    """Move a note; a probe result or version that is not given stays. Raises NoteNotFound."""
    note = s.exec(select(Note).where(Note.id == note_id)).first()
    if note is None:
        raise NoteNotFound(f"no note {note_id!r}")
    check_lease(s, note.user_id)
    note.state = state
    if probe is not None:
        note.probe = probe
    if learned_version is not None:
        note.learned_version = learned_version
    return note


def set_questions(s: Session, note_id: str, questions: list[str]) -> None:
    """Keep the questions that a note answers; none where it is gone."""
    note = s.exec(select(Note).where(Note.id == note_id)).first()
    if note is not None:
        note.questions = questions


def requeue_interrupted(s: Session, user_id: str | None = None) -> int:
    """Make notes whose update died with heed plain notes in the prompt again. Return how many.

    Of one person, or of everybody at start.
    """
    query = select(Note).where(Note.state == NoteState.LEARNING)
    interrupted = s.exec(query if user_id is None else query.where(Note.user_id == user_id)).all()
    for note in interrupted:
        note.state = NoteState.IN_PROMPT
    return len(interrupted)
