"""Better answers that teachers wrote, and what became of each try.

Invariant: what a consolidation took in carries its id (`consolidated_by`) and is taught no more.
"""

from collections.abc import Collection, Sequence

from sqlmodel import Session, col, func, select, update

from storage.kinds import BetterState
from storage.tables import BetterAnswer, copy_of


def add(s: Session, better: BetterAnswer) -> BetterAnswer:
    """Store a try; returns the stored row, the row given is not touched."""
    row = copy_of(better)
    s.add(row)
    s.flush()
    return row


def settled(s: Session, user_id: str, completion_ids: Collection[str], max_failures: int) -> set[str]:
    """Those of the answers that are not tried again: a try was judged, or `max_failures` tries were no answers."""
    query = (
        select(BetterAnswer.completion_id, BetterAnswer.state, func.count())
        .where(BetterAnswer.user_id == user_id, col(BetterAnswer.completion_id).in_(list(completion_ids)))
        .group_by(col(BetterAnswer.completion_id), col(BetterAnswer.state))
    )
    return {i for i, state, number in s.exec(query) if state != BetterState.FAILED or number >= max_failures}


def waiting(s: Session, user_id: str) -> list[BetterAnswer]:
    """Return accepted ones of this person that no consolidation took in, oldest first."""
    query = select(BetterAnswer).where(BetterAnswer.user_id == user_id, BetterAnswer.state == BetterState.ACCEPTED)
    return list(s.exec(query.where(col(BetterAnswer.consolidated_by).is_(None)).order_by(col(BetterAnswer.seq))))


def recent(s: Session, user_id: str, limit: int) -> list[BetterAnswer]:
    """Return the person's newest tries, newest first."""
    query = select(BetterAnswer).where(BetterAnswer.user_id == user_id)
    return list(s.exec(query.order_by(col(BetterAnswer.seq).desc()).limit(limit)))


def about(s: Session, user_id: str, completion_ids: Sequence[str]) -> dict[str, BetterAnswer]:
    """By answer, the better one that was accepted for it."""
    query = select(BetterAnswer).where(
        BetterAnswer.user_id == user_id,
        BetterAnswer.state == BetterState.ACCEPTED,
        col(BetterAnswer.completion_id).in_(completion_ids),
    )
    return {row.completion_id: row for row in s.exec(query.order_by(col(BetterAnswer.seq)))}


def take_in(s: Session, user_id: str, update_id: str, better_ids: Collection[str]) -> None:
    """Note that a consolidation took these in."""
    own = (col(BetterAnswer.user_id) == user_id, col(BetterAnswer.id).in_(list(better_ids)))
    fresh = col(BetterAnswer.consolidated_by).is_(None)
    s.exec(update(BetterAnswer).where(*own, fresh).values(consolidated_by=update_id))
