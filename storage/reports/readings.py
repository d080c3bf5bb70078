"""Readings of corrections beside what people chose: the data that "Just this answer" and "From now on" label.

A correction that was taught again after the choice has two rows; it counts once. No text is read here.
"""

from dataclasses import dataclass

from sqlalchemy import func
from sqlmodel import Session, col, select

from storage.tables import Feedback


@dataclass(frozen=True)
class ReadingCount:
    """The number of corrections that were read alike and answered alike. `mean_margin`: None without a probe."""

    reading: str  # storage.kinds.Meaning
    scope: str  # storage.kinds.Scope; empty: no button was pressed
    is_unsure: bool
    number: int
    mean_margin: float | None


def counts(s: Session) -> list[ReadingCount]:
    """Return how many corrections there are of each kind."""
    kind = (col(Feedback.reading), col(Feedback.scope), col(Feedback.is_unsure))
    firsts = (
        select(func.min(col(Feedback.seq)))
        .where(col(Feedback.reading) != "")
        .group_by(col(Feedback.user_id), col(Feedback.completion_id), col(Feedback.text))
    )
    found = s.exec(
        select(*kind, func.count(), func.avg(col(Feedback.reading_margin)))  # type: ignore[call-overload]
        .where(col(Feedback.seq).in_(firsts))
        .group_by(*kind)
        .order_by(*kind)
    )
    return [ReadingCount(*row) for row in found]
