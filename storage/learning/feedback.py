"""Feedback and how far each piece has come; the order is that of arrival (`seq`).

A piece is stored once however often it is delivered. `training` while an update works on it; after a crash it is
pending again, and given up when it has been tried too often. In a cluster only the holder of the person's lease says
how far it has come.
"""

from collections.abc import Collection

from sqlmodel import Session, col, select

from storage.conversations import completions
from storage.errors import FeedbackNotFound, IdempotencyConflict
from storage.kinds import FeedbackStatus, Scope
from storage.learning.versions import check_lease
from storage.tables import Feedback, copy_of

_CONTENT = ("completion_id", "kind", "text", "value", "training")


def add(s: Session, feedback: Feedback) -> tuple[Feedback, bool]:
    """Store feedback and say whether it is new; a repeated idempotency key brings back the first row.

    The row given is not touched. Raises CompletionNotFound if the answer is not that person's, and
    IdempotencyConflict if the key was used for other content.
    """
    if feedback.completion_id is not None:
        completions.get(s, feedback.user_id, feedback.completion_id)
    known = by_key(s, feedback.user_id, feedback.idempotency_key)
    if known is None:
        row = copy_of(feedback)
        s.add(row)
        s.flush()
        return row, True
    if any(getattr(known, name) != getattr(feedback, name) for name in _CONTENT):
        raise IdempotencyConflict(f"the idempotency key {feedback.idempotency_key!r} was used for other feedback")
    return known, False


def by_key(s: Session, user_id: str, idempotency_key: str) -> Feedback | None:
    """Return the person's feedback that a key was used for, None if it was not used."""
    same_key = (Feedback.user_id == user_id, Feedback.idempotency_key == idempotency_key)
    return s.exec(select(Feedback).where(*same_key)).first()


def get(s: Session, feedback_id: str) -> Feedback:
    """Return a piece of feedback, by its own unguessable id. Raises FeedbackNotFound."""
    feedback = s.exec(select(Feedback).where(Feedback.id == feedback_id)).first()
    if feedback is None:
        raise FeedbackNotFound(f"no feedback {feedback_id!r}")
    return feedback


def of_person(s: Session, user_id: str, feedback_id: str) -> Feedback:
    """Return a piece of feedback of this person. Raises FeedbackNotFound, also for another person's."""
    feedback = get(s, feedback_id)
    if feedback.user_id != user_id:
        raise FeedbackNotFound(f"no feedback {feedback_id!r}")
    return feedback


def pending(s: Session, user_id: str | None = None) -> list[Feedback]:
    """Return what waits for its update, oldest first: of one person, or of all for the scheduler."""
    query = select(Feedback).where(Feedback.status == FeedbackStatus.PENDING)
    if user_id is not None:
        query = query.where(Feedback.user_id == user_id)
    return list(s.exec(query.order_by(col(Feedback.seq))))


def people_waiting(s: Session) -> list[str]:
    """Return the people whose feedback waits or was being learned: in a cluster, whom an engine has to take up."""
    is_open = col(Feedback.status).in_((FeedbackStatus.PENDING, FeedbackStatus.TRAINING))
    return list(s.exec(select(Feedback.user_id).where(is_open).distinct().order_by(Feedback.user_id)))


def history(s: Session, user_id: str, limit: int) -> list[Feedback]:
    """Return the person's newest feedback, newest first."""
    query = select(Feedback).where(Feedback.user_id == user_id)
    return list(s.exec(query.order_by(col(Feedback.seq).desc()).limit(limit)))


def about(s: Session, user_id: str, completion_ids: Collection[str]) -> list[Feedback]:
    """Return the person's feedback on some answers, oldest first."""
    query = select(Feedback).where(Feedback.user_id == user_id, col(Feedback.completion_id).in_(completion_ids))
    return list(s.exec(query.order_by(col(Feedback.seq))))


def begin_training(s: Session, feedback_id: str) -> Feedback:
    """Note that an update starts on it, and count the attempt. Raises FeedbackNotFound."""
    feedback = _own(s, feedback_id)
    feedback.status = FeedbackStatus.TRAINING
    feedback.attempts += 1
    return feedback


def set_status(s: Session, feedback_id: str, status: FeedbackStatus, reason: str = "") -> Feedback:
    """Note how it ended, with the reason in the person's words. Raises FeedbackNotFound."""
    feedback = _own(s, feedback_id)
    feedback.status = status
    feedback.reason = reason
    return feedback


def note_reading(s: Session, feedback_id: str, reading: str, margin: float | None, *, is_unsure: bool) -> None:
    """Note what heed took it for, and how sure it was. Raises FeedbackNotFound."""
    feedback = _own(s, feedback_id)
    feedback.reading, feedback.reading_margin, feedback.is_unsure = reading, margin, is_unsure


def set_scope(s: Session, feedback_id: str, scope: Scope) -> Feedback:
    """Note the person's own choice beside what heed read. Raises FeedbackNotFound."""
    feedback = get(s, feedback_id)
    feedback.scope = scope
    return feedback


def note_taken_back(s: Session, feedback_id: str, number: int) -> None:
    """Note that this complaint took a version back. Raises FeedbackNotFound."""
    get(s, feedback_id).took_back = number


def requeue_interrupted(s: Session, *, max_attempts: int, user_id: str | None = None) -> list[Feedback]:
    """Make pending again what was training when heed died, or failed after `max_attempts`. Return it, oldest first.

    Of one person, or of everybody at start.
    """
    query = select(Feedback).where(Feedback.status == FeedbackStatus.TRAINING)
    if user_id is not None:
        query = query.where(Feedback.user_id == user_id)
    interrupted = list(s.exec(query.order_by(col(Feedback.seq))))
    for feedback in interrupted:
        is_last = feedback.attempts >= max_attempts
        feedback.status = FeedbackStatus.FAILED if is_last else FeedbackStatus.PENDING
        feedback.reason = f"interrupted {feedback.attempts} times" if is_last else ""
    return interrupted


def _own(s: Session, feedback_id: str) -> Feedback:
    """Return feedback that this process may change. Raises FeedbackNotFound, LeaseLost."""
    feedback = get(s, feedback_id)
    check_lease(s, feedback.user_id)
    return feedback
