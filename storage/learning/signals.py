"""Signals for consolidation: what people have said since their last one, and what became of each consolidation.

A signal is a piece of feedback that holds, or an answer that was asked for once more and dropped. Invariant: what a
consolidation took in carries its id (`consolidated_by`) from the transaction on that ended it, and is new no more.
"""

from collections.abc import Collection
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from sqlalchemy.orm import aliased
from sqlmodel import Session, col, func, select, update

from storage.kinds import TAUGHT_AT_ONCE, FeedbackKind, FeedbackStatus, Meaning
from storage.tables import Completion, Feedback, UpdateRun, User

CONSOLIDATION = "consolidation"  # the kind of such an UpdateRun
ENDED = ("accepted", "rejected", "skipped", "parked")
NEGATIVE = frozenset(["👎", "😡", "😠", "🤬", "💩", "🤮", "🙄", "❌", "😞", "😕", "🤦", "😒"]) | {"-1"}
RUNS = 32  # newest consolidations of a person that anybody looks at
_HOLDING = (FeedbackStatus.LEARNED, FeedbackStatus.KEPT)
_FOLLOWED = 100  # newest turns among which next messages are looked for
_REGENERATED = 200  # newest answers given once more that are looked through


@dataclass(frozen=True)
class Waiting:
    """A person with something new: `is_after` is the place of their last consolidation in the log, 0 without one."""

    user_id: str
    num_new: int
    is_after: int
    oldest: int  # place of the oldest new signal in the order of arrival


def fresh(s: Session, user_id: str) -> list[Feedback]:
    """Feedback of this person that holds and that no consolidation took in, oldest first."""
    query = select(Feedback).where(*_fresh(), Feedback.user_id == user_id)
    return list(s.exec(query.order_by(col(Feedback.seq))))


def rehearsed(s: Session, user_id: str) -> list[Feedback]:
    """Corrections and ideals of this person that were learned and that a consolidation took in, oldest first."""
    taken = (Feedback.user_id == user_id, Feedback.status == FeedbackStatus.LEARNED)
    query = select(Feedback).where(
        *taken, col(Feedback.kind).in_(TAUGHT_AT_ONCE), col(Feedback.consolidated_by).is_not(None)
    )
    return list(s.exec(query.order_by(col(Feedback.seq))))


def regenerated(s: Session, user_id: str) -> list[tuple[Completion, Completion]]:
    """Answers dropped for another one that the person then went on from, with that one; oldest first.

    In a chain of them all have the same last one. Where one of both was corrected, the correction is the signal.
    """
    again = aliased(Completion)
    query = (
        select(Completion, again)
        .join(again, col(again.retry_of) == col(Completion.id))
        .where(Completion.user_id == user_id, again.user_id == user_id, col(Completion.consolidated_by).is_(None))
        .order_by(col(again.seq).desc())
        .limit(_REGENERATED)
    )
    pairs = {dropped.id: (dropped, kept) for dropped, kept in s.exec(query)}
    ends = {i: _end(pairs, i) for i in pairs}
    told = corrected(s, user_id, [*pairs, *(end.id for end in ends.values())])
    held = [(pairs[i][0], end) for i, end in ends.items() if not {i, end.id} & told and _went_on(s, end)]
    return sorted(held, key=lambda pair: pair[0].seq or 0)


def followed(s: Session, user_id: str) -> list[tuple[Completion, str]]:
    """Return answers that no one said anything about, each with what the person wrote next in that conversation; oldest
    first.

    Not those that were given again, that were approved, or that a consolidation took in.
    """
    query = select(Completion).where(Completion.user_id == user_id, col(Completion.chat_id).is_not(None))
    newest = list(s.exec(query.order_by(col(Completion.seq).desc()).limit(_FOLLOWED)))[::-1]
    spoken_of = _spoken_of(s, user_id, [c.id for c in newest]) | {c.retry_of for c in newest}
    by_chat: dict[str | None, list[Completion]] = {}
    for c in newest:
        by_chat.setdefault(c.chat_id, []).append(c)
    pairs = [pair for turns in by_chat.values() for pair in pairwise(turns) if _is_next(*pair)]
    fresh = [(a, b) for a, b in pairs if not (a.id in spoken_of or a.is_gold or a.consolidated_by)]
    return [(a, b.messages[-1]["content"]) for a, b in sorted(fresh, key=lambda pair: pair[0].seq or 0)]


def corrected(s: Session, user_id: str, completion_ids: Collection[str]) -> set[str]:
    """Those of the answers about which this person said in words what was wrong."""
    own = (Feedback.user_id == user_id, col(Feedback.completion_id).in_(list(completion_ids)))
    query = select(Feedback.completion_id).where(*own, col(Feedback.kind).in_(TAUGHT_AT_ONCE))
    return {i for i in s.exec(query) if i is not None}


def disliked(s: Session, user_id: str, completion_ids: Collection[str]) -> set[str]:
    """Those of the answers that got a thumb down, or its like, from this person."""
    own = (Feedback.user_id == user_id, col(Feedback.completion_id).in_(list(completion_ids)))
    negative = (Feedback.kind == FeedbackKind.REACTION, col(Feedback.value).in_(NEGATIVE))
    return {i for i in s.exec(select(Feedback.completion_id).where(*own, *negative)) if i is not None}


def take_in(
    s: Session, user_id: str, update_id: str, feedback_ids: Collection[str], completion_ids: Collection[str]
) -> None:
    """Note that a consolidation took these signals in. What is gone by now, or was taken in before, stays as it is."""
    for table, ids in ((Feedback, feedback_ids), (Completion, completion_ids)):
        own = (col(table.user_id) == user_id, col(table.id).in_(list(ids)), col(table.consolidated_by).is_(None))
        s.exec(update(table).where(*own).values(consolidated_by=update_id))


def runs(s: Session, user_id: str) -> list[UpdateRun]:
    """Return this person's consolidations, newest first."""
    query = select(UpdateRun).where(UpdateRun.user_id == user_id, UpdateRun.kind == CONSOLIDATION)
    return list(s.exec(query.order_by(col(UpdateRun.seq).desc()).limit(RUNS)))


def waiting(s: Session, min_new: int) -> list[Waiting]:
    """Return who lets heed learn and has at least `min_new` pieces of feedback that are new; who waited longest first.

    Answers asked for once more are not counted here: they add to a consolidation and do not bring one about.
    """
    counted = (
        select(Feedback.user_id, func.count(), func.min(Feedback.seq))
        .join(User, col(User.id) == col(Feedback.user_id))
        .where(*_fresh(), col(User.is_learning))
        .group_by(col(Feedback.user_id))
        .having(func.count() >= min_new)
    )
    found = [Waiting(user_id, number, _last(s, user_id), oldest or 0) for user_id, number, oldest in s.exec(counted)]
    return sorted(found, key=lambda w: (w.is_after, w.oldest))


def unfinished(s: Session, user_id: str | None = None) -> list[UpdateRun]:
    """Return the newest consolidation of each person, or of one, if it ended neither well nor badly."""
    newest = select(func.max(UpdateRun.seq)).where(UpdateRun.kind == CONSOLIDATION).group_by(col(UpdateRun.user_id))
    query = select(UpdateRun).where(col(UpdateRun.seq).in_(newest), col(UpdateRun.status).not_in(ENDED))
    if user_id is not None:
        query = query.where(UpdateRun.user_id == user_id)
    return list(s.exec(query.order_by(col(UpdateRun.seq))))


def _fresh() -> tuple[Any, ...]:
    return (col(Feedback.consolidated_by).is_(None), col(Feedback.status).in_(_HOLDING), _is_signal())


def _is_signal() -> Any:
    """Return a lesson only if it was learned or told a fact, and a reaction only if it is a negative one."""
    is_lesson, is_reaction = col(Feedback.kind).in_(TAUGHT_AT_ONCE), col(Feedback.kind) == FeedbackKind.REACTION
    is_learned, is_negative = col(Feedback.status) == FeedbackStatus.LEARNED, col(Feedback.value).in_(NEGATIVE)
    is_fact = (col(Feedback.reading) == Meaning.FACT) & (col(Feedback.is_unsure).is_(False)) & (Feedback.scope == "")
    return (~is_lesson | is_learned | is_fact) & (~is_reaction | is_negative)


def _is_next(answer: Completion, later: Completion) -> bool:
    """Return True if the later turn goes on from an answer: not given again, not after a reset."""
    if later.retry_of is not None or len(later.messages) < 3 or later.messages[-1]["role"] != "user":
        return False
    return later.messages[-2] == {"role": "assistant", "content": answer.text}


def _spoken_of(s: Session, user_id: str, completion_ids: Collection[str]) -> set[str]:
    own = (Feedback.user_id == user_id, col(Feedback.completion_id).in_(list(completion_ids)))
    return {i for i in s.exec(select(Feedback.completion_id).where(*own)) if i is not None}


def _end(pairs: dict[str, tuple[Completion, Completion]], completion_id: str) -> Completion:
    """Return the last answer of a chain of answers to one message."""
    kept = pairs[completion_id][1]
    while kept.id in pairs:
        kept = pairs[kept.id][1]
    return kept


def _went_on(s: Session, kept: Completion) -> bool:
    """Return True if the person went on to something else after an answer, and so was content with it."""
    later = (Completion.chat_id == kept.chat_id, col(Completion.seq) > kept.seq, col(Completion.retry_of).is_(None))
    if kept.chat_id is None or s.exec(select(Completion.id).where(*later).limit(1)).first() is None:
        return False
    disliked = (Feedback.completion_id == kept.id, Feedback.kind == FeedbackKind.REACTION)
    return s.exec(select(Feedback.id).where(*disliked, col(Feedback.value).in_(NEGATIVE)).limit(1)).first() is None


def _last(s: Session, user_id: str) -> int:
    ended = (UpdateRun.user_id == user_id, UpdateRun.kind == CONSOLIDATION, col(UpdateRun.status).in_(ENDED))
    return s.exec(select(func.max(UpdateRun.seq)).where(*ended)).one() or 0
