"""Runs of the evaluation harness that a person handed to heed: how each was made, and its figures."""

from typing import Any

from sqlmodel import Session, col, select

from storage.errors import EvalRunNotFound
from storage.tables import EvalRun


def add(s: Session, config: dict[str, Any], summary: dict[str, Any]) -> EvalRun:
    """Store a run."""
    row = EvalRun(config=config, summary=summary)
    s.add(row)
    s.flush()
    return row


def get(s: Session, run_id: str) -> EvalRun:
    """Return a run. Raises EvalRunNotFound."""
    row = s.get(EvalRun, run_id)
    if row is None:
        raise EvalRunNotFound(f"no evaluation {run_id!r}")
    return row


def recent(s: Session, limit: int) -> list[EvalRun]:
    """Return the newest runs, newest first."""
    return list(s.exec(select(EvalRun).order_by(col(EvalRun.created_at).desc(), col(EvalRun.id)).limit(limit)))
