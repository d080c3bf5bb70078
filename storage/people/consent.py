"""Consent records: what people said about learning, every step with its wording and time.

Whether their ordinary next messages may be learned from is a question of its own, off until they say so; a no to
learning is a no to that, too.

The newest answer of a person counts; being asked again takes nothing back. `record` changes User.is_learning with the
step, in one transaction.
"""

from sqlalchemy import exists, func, or_
from sqlmodel import Session, col, select

from storage.kinds import ConsentChoice, FeedbackKind
from storage.people import people
from storage.tables import AdapterVersion, Consent, Feedback, Identity, UpdateRun, User, copy_of

_ANSWERS = (ConsentChoice.YES, ConsentChoice.NO, ConsentChoice.WITHDRAWN)
_FOLLOW_UPS = (ConsentChoice.FOLLOW_UPS, ConsentChoice.NO_FOLLOW_UPS)
SENT_OUT = "+teacher"  # ends a wording that says a teacher elsewhere may read conversations


def record(s: Session, step: Consent, *, is_permitted: bool) -> Consent:
    """Keep a step; learning is on if consent is given and the platform permits it. Raises PersonNotFound.

    The row given is not touched.
    """
    user = people.get(s, step.user_id)
    row = copy_of(step)
    s.add(row)
    s.flush()
    user.is_learning = is_permitted and is_given(s, step.user_id)
    return row


def set_follow_ups(s: Session, step: Consent) -> Consent:
    """Keep a step about follow-ups; whether learning is on stays as it is. The row given is not touched."""
    row = copy_of(step)
    s.add(row)
    s.flush()
    return row


def allows_follow_ups(s: Session, user_id: str) -> bool:
    """Return True if the person's ordinary next messages may be learned from."""
    said = (ConsentChoice.FOLLOW_UPS, ConsentChoice.NO_FOLLOW_UPS, ConsentChoice.NO, ConsentChoice.WITHDRAWN)
    query = select(Consent.choice).where(Consent.user_id == user_id, col(Consent.choice).in_(said))
    return s.exec(query.order_by(col(Consent.seq).desc()).limit(1)).first() == ConsentChoice.FOLLOW_UPS


def newest(s: Session, user_id: str) -> Consent | None:
    """Return the person's last step about learning, None if they were never asked."""
    query = select(Consent).where(Consent.user_id == user_id, col(Consent.choice).not_in(_FOLLOW_UPS))
    return s.exec(query.order_by(col(Consent.seq).desc()).limit(1)).first()


def is_given(s: Session, user_id: str) -> bool:
    """Return True if the person's last answer was yes."""
    query = select(Consent.choice).where(Consent.user_id == user_id, col(Consent.choice).in_(_ANSWERS))
    return s.exec(query.order_by(col(Consent.seq).desc()).limit(1)).first() == ConsentChoice.YES


def may_be_sent(s: Session, user_id: str) -> bool:
    """Return True if a teacher elsewhere may read this person's conversations: they last said yes to words that say so.

    Local people, who are never asked, are the operator's own.
    """
    query = select(Consent).where(Consent.user_id == user_id, col(Consent.choice).not_in(_FOLLOW_UPS))
    steps = list(s.exec(query.order_by(col(Consent.seq).desc())))
    answered = next((step for step in steps if step.choice != ConsentChoice.ASKED), None)
    if answered is None:
        return not steps
    return answered.choice == ConsentChoice.YES and answered.wording.endswith(SENT_OUT)


def history(s: Session, user_id: str) -> list[Consent]:
    """Every step of this person, oldest first."""
    query = select(Consent).where(Consent.user_id == user_id)
    return list(s.exec(query.order_by(col(Consent.seq))))


def enforce(s: Session, platform: str, *, is_permitted: bool) -> int:
    """Let only those learn on `platform` who said yes, and no one where it is not permitted; returns
    changes.
    """
    on_platform = select(Identity.user_id).where(Identity.platform == platform)
    has_said_yes = exists().where(col(Consent.user_id) == col(User.id), col(Consent.choice) == ConsentChoice.YES)
    num_changed = 0
    for user in s.exec(select(User).where(col(User.id).in_(on_platform), or_(col(User.is_learning), has_said_yes))):
        wanted = is_permitted and is_given(s, user.id)
        num_changed += user.is_learning != wanted
        user.is_learning = wanted
    return num_changed


def unfinished_withdrawals(s: Session) -> list[str]:
    """At start: people who withdrew and whose lessons are still there, because heed died in between."""
    about_learning = col(Consent.choice).not_in(_FOLLOW_UPS)
    newest_steps = select(func.max(Consent.seq)).where(about_learning).group_by(col(Consent.user_id))
    lessons = or_(
        exists().where(col(AdapterVersion.user_id) == col(Consent.user_id)),
        exists().where(col(UpdateRun.user_id) == col(Consent.user_id)),
        exists().where(
            col(Feedback.user_id) == col(Consent.user_id),
            col(Feedback.kind) != FeedbackKind.NOTE,
            col(Feedback.created_at) <= col(Consent.created_at),
        ),
    )
    is_withdrawn = (col(Consent.seq).in_(newest_steps), Consent.choice == ConsentChoice.WITHDRAWN)
    return list(s.exec(select(Consent.user_id).where(*is_withdrawn, lessons).order_by(col(Consent.seq))))
