"""Figures over all people's rows, for the operator and for limits: counts, times and sizes, never a text.

Times are UTC seconds. A platform is that of the conversation, or the person's own where there was none (`Chat` is
optional for a completion). Nothing here is a decision.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from sqlalchemy import func
from sqlmodel import Session, col, select

from storage.kinds import TAUGHT_AT_ONCE, FeedbackStatus, VersionState
from storage.learning import drift_audits
from storage.people import people
from storage.tables import AdapterVersion, Chat, Completion, Feedback, Identity, UpdateRun, User

_IS_UPDATE = col(UpdateRun.kind) != drift_audits.KIND
_WAITING = (FeedbackStatus.PENDING, FeedbackStatus.TRAINING)


@dataclass(frozen=True)
class Queue:
    """Lessons that have not ended."""

    length: int
    oldest_at_s: float | None


@dataclass(frozen=True)
class Adapters:
    """The adapters on disk."""

    num_people: int
    num_versions: int
    size_bytes: int
    num_taken_back: int


@dataclass(frozen=True)
class PersonStatistics:
    """One line of the operator's lists."""

    user: User
    accounts: tuple[str, ...]
    num_answers: int
    last_at_s: float | None
    num_versions: int
    size_bytes: int


def spent_since(s: Session, platform: str, account: str, since_s: float) -> tuple[list[float], list[float]]:
    """When an account was answered and when it taught something, oldest first."""
    user = people.find(s, platform, account)
    if user is None:
        return [], []
    answered = select(Completion.created_at).where(Completion.user_id == user.id, Completion.created_at > since_s)
    taught = select(Feedback.created_at).where(Feedback.user_id == user.id, Feedback.created_at > since_s)
    taught = taught.where(col(Feedback.kind).in_(TAUGHT_AT_ONCE))
    answered_at = s.exec(answered.order_by(col(Completion.created_at))).all()
    return list(answered_at), list(s.exec(taught.order_by(col(Feedback.created_at))).all())


def users(s: Session, since_s: float) -> dict[str, int]:
    """People who were answered since then, by platform."""
    return _messages(s, since_s, func.count(func.distinct(Completion.user_id)))


def known_users(s: Session) -> dict[str, int]:
    """People heed has met at all, by platform."""
    query = select(Identity.platform, func.count()).group_by(col(Identity.platform))
    return dict(s.exec(query).all())


def messages(s: Session, since_s: float) -> dict[str, int]:
    """Messages that were answered since then, by platform; an answer given again counts once."""
    return _messages(s, since_s, func.count())


def feedback(s: Session, since_s: float) -> dict[tuple[str, str], int]:
    """Feedback since then, by kind and platform."""
    own = _own_platform()
    platform = func.coalesce(col(Chat.platform), own.c.platform)
    query: Any = (
        select(Feedback.kind, platform, func.count())
        .select_from(Feedback)
        .outerjoin(Completion, col(Completion.id) == col(Feedback.completion_id))
        .outerjoin(Chat, col(Chat.id) == col(Completion.chat_id))
        .outerjoin(own, own.c.user_id == col(Feedback.user_id))
        .where(Feedback.created_at >= since_s)
        .group_by(col(Feedback.kind), platform)
    )
    return {(kind, where): number for kind, where, number in s.exec(query)}


def tokens(s: Session, since_s: float) -> tuple[int, int]:
    """Tokens read and written since then."""
    sums = [func.sum(func.json_array_length(column)) for column in _TOKEN_COLUMNS]
    query: Any = select(*sums).where(col(Completion.created_at) >= since_s)
    num_in, num_out = s.exec(query).one()
    return num_in or 0, num_out or 0


_TOKEN_COLUMNS = (col(Completion.prompt_token_ids), col(Completion.completion_token_ids))


def answer_times(s: Session, since_s: float, limit: int) -> list[tuple[float, float]]:
    """Seconds to the first token and to the whole answer, of the newest answers since then."""
    query = select(Completion.time_to_first_token_s, Completion.duration_s).where(Completion.created_at >= since_s)
    return list(s.exec(query.order_by(col(Completion.created_at).desc()).limit(limit)).all())


def updates(s: Session, since_s: float) -> dict[str, int]:
    """Return updates that began since then, by how they ended."""
    query = select(UpdateRun.status, func.count()).where(UpdateRun.started_at >= since_s, _IS_UPDATE)
    return dict(s.exec(query.group_by(col(UpdateRun.status))).all())


def update_times_ms(s: Session, since_s: float, limit: int) -> list[float]:
    """How long the newest updates took that trained anything."""
    query = select(UpdateRun.duration_ms).where(UpdateRun.started_at >= since_s, UpdateRun.steps > 0)
    return list(s.exec(query.order_by(col(UpdateRun.started_at).desc()).limit(limit)).all())


def recent_updates(s: Session, limit: int) -> list[tuple[UpdateRun, User]]:
    """Return the newest updates of everybody, newest first."""
    query = select(UpdateRun, User).join(User, col(User.id) == col(UpdateRun.user_id))
    return list(s.exec(query.order_by(col(UpdateRun.seq).desc()).limit(limit)).all())


def queue(s: Session) -> Queue:
    """Return what waits to be learned."""
    query = select(func.count(), func.min(Feedback.created_at)).where(
        col(Feedback.status).in_(_WAITING), col(Feedback.kind).in_(TAUGHT_AT_ONCE)
    )
    return Queue(*s.exec(query).one())


def adapters(s: Session) -> Adapters:
    """Return the accepted versions of everybody, and the lessons that were taken back."""
    accepted = AdapterVersion.state == VersionState.ACCEPTED
    figures: Any = select(
        func.count(func.distinct(AdapterVersion.user_id)), func.count(), func.sum(AdapterVersion.size_bytes)
    )
    num_people, num_versions, size_bytes = s.exec(figures.where(accepted)).one()
    undone = select(func.count()).select_from(Feedback).where(Feedback.status == FeedbackStatus.UNDONE)
    return Adapters(num_people, num_versions, size_bytes or 0, s.exec(undone).one())


def per_day(s: Session, day_starts_s: Sequence[float]) -> list[tuple[int, int]]:
    """Messages and updates of each day; `day_starts_s` has one more entry, the end of the last day."""
    asked = select(func.count()).where(*_IS_MESSAGE)
    learned = select(func.count()).select_from(UpdateRun).where(_IS_UPDATE)
    counts = []
    for start_s, end_s in pairwise(day_starts_s):
        on_day = asked.where(Completion.created_at >= start_s, Completion.created_at < end_s)
        ran = learned.where(UpdateRun.started_at >= start_s, UpdateRun.started_at < end_s)
        counts.append((s.exec(on_day).one(), s.exec(ran).one()))
    return counts


def everybody(s: Session, limit: int) -> list[PersonStatistics]:
    """Return people with what they did and what heed learned from them, the newest writer first."""
    last = func.max(Completion.created_at)
    query: Any = (
        select(User, func.count(col(Completion.seq)), last)
        .outerjoin(Completion, col(Completion.user_id) == col(User.id))
        .group_by(col(User.id))
        .order_by(func.coalesce(last, User.created_at).desc())
        .limit(limit)
    )
    return [_person(s, user, number, last_at_s) for user, number, last_at_s in s.exec(query)]


def _person(s: Session, user: User, num_answers: int, last_at_s: float | None) -> PersonStatistics:
    accepted = (AdapterVersion.user_id == user.id, AdapterVersion.state == VersionState.ACCEPTED)
    figures: Any = select(func.count(), func.sum(AdapterVersion.size_bytes)).where(*accepted)
    num_versions, size_bytes = s.exec(figures).one()
    accounts = tuple(f"{known.platform}:{known.account}" for known in people.identities(s, user.id))
    return PersonStatistics(user, accounts, num_answers, last_at_s, num_versions, size_bytes or 0)


_IS_MESSAGE = (col(Completion.retry_of).is_(None), col(Completion.choice_index) == 0)


def _messages(s: Session, since_s: float, figure: Any) -> dict[str, int]:
    own = _own_platform()
    platform = func.coalesce(col(Chat.platform), own.c.platform)
    query: Any = (
        select(platform, figure)
        .select_from(Completion)
        .outerjoin(Chat, col(Chat.id) == col(Completion.chat_id))
        .outerjoin(own, own.c.user_id == col(Completion.user_id))
        .where(col(Completion.created_at) >= since_s, *_IS_MESSAGE)
        .group_by(platform)
    )
    return dict(s.exec(query).all())


def _own_platform() -> Any:
    """One platform of each person: of most the only one."""
    platform = func.min(Identity.platform).label("platform")
    return select(col(Identity.user_id).label("user_id"), platform).group_by(col(Identity.user_id)).subquery()
