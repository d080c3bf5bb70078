"""The log of updates: what ran, how long, what it measured, what the gate said. Figures only, never a decision."""

import math
from typing import Any

from sqlmodel import Session, col, select

from storage.errors import UpdateNotFound
from storage.learning.versions import check_lease
from storage.tables import UpdateRun, copy_of

_FIXED = {"seq", "id", "user_id", "started_at"}

CANCELLED = "cancelled"  # the status of an update that the person stopped
TAKEN_BACK = "taken back"  # the status of an update whose lesson made the answers worse


def start(s: Session, update: UpdateRun) -> UpdateRun:
    """Note that an update begins; returns the stored row, the row given is not touched."""
    check_lease(s, update.user_id)
    row = copy_of(update)
    s.add(row)
    s.flush()
    return row


def finish(s: Session, update_id: str, **fields: Any) -> UpdateRun:
    """Note how an update ended. A figure that is not finite is stored as None: nothing was measured.

    Raises UpdateNotFound, and TypeError for a field that does not exist or never changes.
    """
    unknown = set(fields) - (set(UpdateRun.model_fields) - _FIXED)
    if unknown:
        raise TypeError(f"an update has no such fields: {sorted(unknown)}")
    update = s.exec(select(UpdateRun).where(UpdateRun.id == update_id)).first()
    if update is None:
        raise UpdateNotFound(f"no update {update_id!r}")
    check_lease(s, update.user_id)
    for name, value in fields.items():
        setattr(update, name, _finite(value))
    return update


def get(s: Session, user_id: str, update_id: str) -> UpdateRun:
    """Return an update of this person. Raises UpdateNotFound."""
    update = s.exec(select(UpdateRun).where(UpdateRun.id == update_id, UpdateRun.user_id == user_id)).first()
    if update is None:
        raise UpdateNotFound(f"no update {update_id!r}")
    return update


def recent(s: Session, user_id: str, limit: int) -> list[UpdateRun]:
    """Return the person's newest updates, newest first."""
    query = select(UpdateRun).where(UpdateRun.user_id == user_id)
    return list(s.exec(query.order_by(col(UpdateRun.seq).desc()).limit(limit)))


def cancel(s: Session, feedback_id: str) -> None:
    """Note that a person stopped the lesson of a piece of feedback: its last update has failed because of that."""
    query = select(UpdateRun).where(UpdateRun.feedback_id == feedback_id, UpdateRun.status == "failed")
    last = s.exec(query.order_by(col(UpdateRun.seq).desc())).first()
    if last is not None:
        check_lease(s, last.user_id)
        last.status, last.error = CANCELLED, ""


def fail_interrupted(s: Session, user_id: str | None = None) -> int:
    """Note that what ran when heed died has failed, of one person, or of everybody at start. Return how many."""
    query = select(UpdateRun).where(UpdateRun.status == "running")
    interrupted = s.exec(query if user_id is None else query.where(UpdateRun.user_id == user_id)).all()
    for update in interrupted:
        update.status, update.error = "failed", "interrupted by a restart"
    return len(interrupted)


def _finite(value: Any) -> Any:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(item) for item in value]
    return value
