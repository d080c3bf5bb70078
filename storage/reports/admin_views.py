"""The operator's looks at what a person wrote: one row each time a dashboard showed it.

The rows are that person's: they are in their export, and go when they are forgotten.
"""

from sqlmodel import Session, col, select

from storage.tables import AdminView


def note(s: Session, user_id: str, page: str, about: str) -> None:
    """Note that a page showed words of this person; `about` is the id of what it showed."""
    s.add(AdminView(user_id=user_id, page=page, about=about))


def recent(s: Session, user_id: str, limit: int) -> list[AdminView]:
    """Return the newest looks at this person's words, newest first."""
    query = select(AdminView).where(AdminView.user_id == user_id)
    return list(s.exec(query.order_by(col(AdminView.seq).desc()).limit(limit)))
