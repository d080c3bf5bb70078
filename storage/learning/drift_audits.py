"""Drift audits: rows of the log of updates whose status is the level that was found.

Invariant: they are never counted as updates, for nothing was learned.
"""

from collections import Counter

from sqlmodel import Session, col, func, select

from storage.errors import VersionNotFound
from storage.learning import versions
from storage.learning.signals import CONSOLIDATION
from storage.people import people
from storage.tables import UpdateRun

KIND = "audit"  # of such an UpdateRun; its `parent_version` is the version that was looked at


def newest(s: Session, user_id: str) -> UpdateRun | None:
    """Return this person's last audit."""
    query = select(UpdateRun).where(UpdateRun.user_id == user_id, UpdateRun.kind == KIND)
    return s.exec(query.order_by(col(UpdateRun.seq).desc()).limit(1)).first()


def is_due(s: Session, user_id: str, every_versions: int) -> bool:
    """Return True if a consolidation made the active version, or so many versions were made, since the last audit."""
    active = people.get(s, user_id).active_version
    last = newest(s, user_id)
    audited = last.parent_version if last is not None else 0
    if active == audited:
        return False
    return abs(active - audited) >= every_versions or _is_consolidated(s, user_id, active)


def levels(s: Session) -> dict[str, int]:
    """How many people's last audit found what."""
    last = select(func.max(UpdateRun.seq)).where(UpdateRun.kind == KIND).group_by(col(UpdateRun.user_id))
    return dict(Counter(s.exec(select(UpdateRun.status).where(col(UpdateRun.seq).in_(last)))))


def _is_consolidated(s: Session, user_id: str, number: int) -> bool:
    try:
        update_id = versions.get(s, user_id, number).update_id
    except VersionNotFound:
        return False  # the base model
    made_by = select(UpdateRun.kind).where(UpdateRun.user_id == user_id, UpdateRun.id == update_id)
    return s.exec(made_by).first() == CONSOLIDATION
