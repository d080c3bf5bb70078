"""Figures over everybody's rows, for the operator and for limits: counts and times, never a text."""

from sqlmodel import Session, col, select

from storage import people
from storage.tables import Completion, Feedback, FeedbackKind

_LESSONS = (FeedbackKind.CORRECTION, FeedbackKind.IDEAL)


def spent_since(s: Session, platform: str, account: str, since_s: float) -> tuple[list[float], list[float]]:
    """When an account was answered and when it taught something, oldest first."""
    user = people.find(s, platform, account)
    if user is None:
        return [], []
    answered = select(Completion.created_at).where(Completion.user_id == user.id, Completion.created_at > since_s)
    taught = select(Feedback.created_at).where(Feedback.user_id == user.id, Feedback.created_at > since_s)
    taught = taught.where(col(Feedback.kind).in_(_LESSONS))
    answered_at = s.exec(answered.order_by(col(Completion.created_at))).all()
    return list(answered_at), list(s.exec(taught.order_by(col(Feedback.created_at))).all())
