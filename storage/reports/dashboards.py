"""The rows of the operator's dashboards, in pages by key: a page costs the same wherever in the log it lies.

Lists carry figures and names, never what a person wrote; single rows carry texts, and of people who let heed learn from
them only (`User.is_learning`: on chat platforms that is their consent). Columns of token ids are never read here.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Generic, TypeVar

from sqlalchemy import and_, exists, func, or_
from sqlalchemy import select as sql_select
from sqlalchemy.orm import load_only
from sqlmodel import Session, col, select

from storage.errors import PersonNotFound, UpdateNotFound
from storage.kinds import FeedbackStatus
from storage.tables import Chat, Completion, Feedback, Identity, UpdateRun, User

T = TypeVar("T")


@dataclass(frozen=True)
class Page(Generic[T]):
    """Some rows, the newest first. `older` is the key that the next page begins below, None on the last one."""

    rows: Sequence[T]
    older: int | None = None


@dataclass(frozen=True)
class Counts:
    """The counts of a span of time."""

    answers: int
    feedback: int
    updates: int


@dataclass(frozen=True)
class UpdateLine:
    """One update in a list. Times in ms, divergences in nats per token."""

    seq: int
    id: str
    user_id: str
    display_name: str
    kind: str
    status: str
    started_at: float
    duration_ms: float
    steps: int
    divergence_before: float | None
    divergence_after: float | None
    version: int | None


@dataclass(frozen=True)
class UpdateStory:
    """One update with what it came from and what came of it; where `is_shown` is False, no text of it is to be seen."""

    run: UpdateRun
    user: User
    feedback: Feedback | None
    before: Completion | None
    after: Completion | None
    is_shown: bool


@dataclass(frozen=True)
class Conversation:
    """One conversation in a list; `chat_id` is None for calls that belong to none."""

    chat_id: str | None
    user_id: str
    display_name: str
    platform: str
    num_answers: int
    newest: int  # seq of its newest answer
    last_at_s: float


@dataclass(frozen=True)
class PersonLine:
    """One person in a list."""

    user: User
    accounts: tuple[str, ...]
    num_answers: int
    num_updates: int
    last_at_s: float | None  # of the newest answer; None if there is none


@dataclass(frozen=True)
class Seen:
    """The place of a person in the order of their newest answers; `seq` is that answer's, 0 if there is none."""

    seq: int
    user_id: str


_ANSWER = load_only(
    *(
        getattr(Completion, name)
        for name in (
            "seq", "id", "user_id", "chat_id", "retry_of", "created_at", "messages", "notes", "text",
            "adapter_version", "finish_reason", "time_to_first_token_s", "duration_s", "is_gold",
        )
    ),
    raiseload=True,
)  # fmt: skip


def counts(s: Session, since_s: float, until_s: float | None = None) -> Counts:
    """Answers, feedback and updates of everybody in a span of time."""
    return Counts(
        _count(s, col(Completion.created_at), since_s, until_s),
        _count(s, col(Feedback.created_at), since_s, until_s),
        _count(s, col(UpdateRun.started_at), since_s, until_s),
    )


def per_day(s: Session, day_starts_s: Sequence[float]) -> list[Counts]:
    """Return the counts of each day; `day_starts_s` has one more entry, the end of the last day."""
    return [counts(s, *span) for span in pairwise(day_starts_s)]


def newest(s: Session) -> tuple[int, int, int, int]:
    """Something that differs after every answer, piece of feedback and change of an update: for live pages."""
    tables: tuple[Any, ...] = (Completion.seq, Feedback.seq, UpdateRun.seq)
    places = [s.exec(select(func.max(column))).one() or 0 for column in tables]
    waiting = select(func.count()).where(col(Feedback.status).in_((FeedbackStatus.PENDING, FeedbackStatus.TRAINING)))
    return places[0], places[1], places[2], s.exec(waiting).one()


def updates(
    s: Session, limit: int, before: int | None = None, *, user_id: str = "", status: str = ""
) -> Page[UpdateLine]:
    """Return the newest updates below a key, of one person or with one status where that is asked for."""
    query = sql_select(*_LINE).join(User, col(User.id) == col(UpdateRun.user_id))
    if before is not None:
        query = query.where(col(UpdateRun.seq) < before)
    if user_id:
        query = query.where(col(UpdateRun.user_id) == user_id)
    if status:
        query = query.where(col(UpdateRun.status) == status)
    found = s.connection().execute(query.order_by(col(UpdateRun.seq).desc()).limit(limit + 1)).all()
    return _page([UpdateLine(*row) for row in found], limit, [row[0] for row in found])


_LINE: tuple[Any, ...] = (
    UpdateRun.seq, UpdateRun.id, UpdateRun.user_id, User.display_name, UpdateRun.kind, UpdateRun.status,
    UpdateRun.started_at, UpdateRun.duration_ms, UpdateRun.steps, UpdateRun.divergence_before,
    UpdateRun.divergence_after, UpdateRun.version,
)  # fmt: skip


def update(s: Session, update_id: str) -> UpdateStory:
    """One update with its story. Raises UpdateNotFound."""
    pair = s.exec(
        select(UpdateRun, User).join(User, col(User.id) == col(UpdateRun.user_id)).where(UpdateRun.id == update_id)
    ).first()
    if pair is None:
        raise UpdateNotFound(f"no update {update_id!r}")
    run, user = pair
    if not user.is_learning or run.feedback_id is None:
        return UpdateStory(run, user, None, None, None, user.is_learning)
    given = s.exec(select(Feedback).where(Feedback.id == run.feedback_id)).first()
    before = _answer(s, Completion.id == given.completion_id) if given and given.completion_id else None
    is_next = (Completion.retry_of == before.id, Completion.adapter_version == run.version) if before else ()
    return UpdateStory(run, user, given, before, _answer(s, *is_next) if is_next else None, is_shown=True)


def conversations(s: Session, limit: int, before: int | None = None) -> Page[Conversation]:
    """Return the conversations whose newest answer is below a key, of people who let heed learn from them."""
    last = func.max(Completion.seq)
    groups: Any = select(
        col(Completion.chat_id), col(Completion.user_id), func.count().label("number"), last.label("newest")
    ).group_by(col(Completion.chat_id), col(Completion.user_id))  # nothing but an index is read for it
    if before is not None:
        groups = groups.having(last < before)
    g = groups.subquery()
    columns: tuple[Any, ...] = (g.c.chat_id, g.c.user_id, User.display_name, g.c.number, g.c.newest)
    query = sql_select(*columns).join(User, col(User.id) == g.c.user_id).where(col(User.is_learning))
    found = s.connection().execute(query.order_by(g.c.newest.desc()).limit(limit + 1)).all()
    ends = select(Completion.seq, Completion.created_at).where(col(Completion.seq).in_([row[4] for row in found]))
    last_at_s = dict(s.exec(ends).all())
    places = select(Chat.id, Chat.platform).where(col(Chat.id).in_([row[0] for row in found if row[0]]))
    platforms = dict(s.exec(places).all())
    shown = [
        Conversation(chat_id, user_id, name, platforms.get(chat_id, ""), number, newest, last_at_s[newest])
        for chat_id, user_id, name, number, newest in found
    ]
    return _page(shown, limit, [row.newest for row in shown])


def answers(s: Session, user_id: str, chat_id: str | None, limit: int, before: int | None = None) -> Page[Completion]:
    """Return the newest answers of a conversation below a key; nothing of a person who does not let heed learn from
    them.
    """
    is_learning = select(User.id).where(User.id == user_id, col(User.is_learning))
    query = select(Completion).options(_ANSWER).where(col(Completion.user_id).in_(is_learning))
    query = query.where(Completion.chat_id == chat_id) if chat_id else query.where(col(Completion.chat_id).is_(None))
    if before is not None:
        query = query.where(col(Completion.seq) < before)
    found = list(s.exec(query.order_by(col(Completion.seq).desc()).limit(limit + 1)))
    return _page(found, limit, [row.seq or 0 for row in found])


def spans(s: Session, since_s: float, limit: int) -> tuple[list[tuple[float, float]], list[tuple[float, float]]]:
    """When answers were written and when updates ran since then: pairs of begin and end, the newest `limit` of each."""
    wrote = select(Completion.created_at, Completion.duration_s).where(Completion.created_at >= since_s)
    wrote = wrote.order_by(col(Completion.created_at).desc()).limit(limit)
    ran = select(UpdateRun.started_at, UpdateRun.duration_ms).where(UpdateRun.started_at >= since_s)
    ran = ran.order_by(col(UpdateRun.started_at).desc()).limit(limit)
    decoded = [(end_s - took_s, end_s) for end_s, took_s in s.exec(wrote)]
    return decoded, [(start_s, start_s + took_ms / 1000) for start_s, took_ms in s.exec(ran)]


def people(s: Session, limit: int, after: str = "") -> tuple[list[PersonLine], str | None]:
    """People in the order of their ids, those behind `after`; and the id that the next page begins behind."""
    found = list(s.exec(select(User).where(col(User.id) > after).order_by(col(User.id)).limit(limit + 1)))
    return _person_lines(s, found[:limit]), found[limit - 1].id if len(found) > limit else None


def people_by_last_seen(
    s: Session, limit: int, words: str = "", below: Seen | None = None
) -> tuple[list[PersonLine], Seen | None]:
    """People, the last seen first, those behind `below`; and the place that the next page begins behind.

    `words`: only people who have them in their name or in an account, or whose id it is.
    """
    newest = select(Completion.user_id, func.max(Completion.seq).label("seq")).group_by(col(Completion.user_id))
    last = newest.subquery()
    seq = func.coalesce(last.c.seq, 0)
    query = select(User, seq).join(last, last.c.user_id == User.id, isouter=True)
    if words:
        has_account = exists().where(
            col(Identity.user_id) == User.id, col(Identity.account).icontains(words, autoescape=True)
        )
        is_named = col(User.display_name).icontains(words, autoescape=True)
        query = query.where(or_(is_named, has_account, col(User.id) == words))
    if below is not None:
        query = query.where(or_(seq < below.seq, and_(seq == below.seq, col(User.id) > below.user_id)))
    found = list(s.exec(query.order_by(seq.desc(), col(User.id)).limit(limit + 1)))
    next_place = Seen(found[limit - 1][1], found[limit - 1][0].id) if len(found) > limit else None
    return _person_lines(s, [user for user, _ in found[:limit]]), next_place


def _person_lines(s: Session, shown: list[User]) -> list[PersonLine]:
    ids = [user.id for user in shown]
    accounts: dict[str, list[str]] = {}
    for identity in s.exec(select(Identity).where(col(Identity.user_id).in_(ids)).order_by(col(Identity.platform))):
        accounts.setdefault(identity.user_id, []).append(f"{identity.platform}:{identity.account}")
    answered, updated = _per_person(s, Completion, ids), _per_person(s, UpdateRun, ids)
    seen = dict(
        s.exec(
            select(Completion.user_id, func.max(Completion.created_at))
            .where(col(Completion.user_id).in_(ids))
            .group_by(col(Completion.user_id))
        ).all()
    )
    return [
        PersonLine(u, tuple(accounts.get(u.id, ())), answered.get(u.id, 0), updated.get(u.id, 0), seen.get(u.id))
        for u in shown
    ]


def pairs(s: Session, user_id: str, first: int, second: int, limit: int) -> list[tuple[Completion, Completion]]:
    """Return the same question answered by two versions: an answer, and the one that was given again in its place.

    Nothing of a person who does not let heed learn from them. Raises PersonNotFound.
    """
    user = s.get(User, user_id)
    if user is None:
        raise PersonNotFound(f"no person {user_id!r}")
    if not user.is_learning:
        return []
    query = select(Completion).options(_ANSWER).where(
        Completion.user_id == user_id, col(Completion.adapter_version).in_((first, second)),
        col(Completion.retry_of).is_not(None),
    )  # fmt: skip
    found = []
    for again in s.exec(query.order_by(col(Completion.seq).desc()).limit(limit)):
        dropped = _answer(s, Completion.id == again.retry_of, Completion.user_id == user_id)
        if dropped is not None and {dropped.adapter_version, again.adapter_version} == {first, second}:
            is_in_order = dropped.adapter_version == first
            found.append((dropped, again) if is_in_order else (again, dropped))
    return found


def _answer(s: Session, *conditions: Any) -> Completion | None:
    query = select(Completion).options(_ANSWER).where(*conditions)
    return s.exec(query.order_by(col(Completion.seq).desc()).limit(1)).first()


def _count(s: Session, column: Any, since_s: float, until_s: float | None) -> int:
    query = select(func.count()).where(column >= since_s)
    return s.exec(query if until_s is None else query.where(column < until_s)).one()


def _per_person(s: Session, table: Any, ids: Sequence[str]) -> dict[str, int]:
    query: Any = select(table.user_id, func.count()).where(table.user_id.in_(ids)).group_by(table.user_id)
    return dict(s.exec(query).all())


def _page(rows: Sequence[T], limit: int, keys: Sequence[int]) -> Page[T]:
    return Page(rows[:limit], keys[limit - 1] if len(rows) > limit else None)
