"""Notes about workspaces: a person's own, each for one workspace, in the order they were written."""

from sqlmodel import Session, col, delete, select

from storage.tables import WorkspaceNote


def add(s: Session, user_id: str, workspace: str, text: str) -> None:
    """Store a note about a person's workspace."""
    s.add(WorkspaceNote(user_id=user_id, workspace=workspace, text=text))


def of(s: Session, user_id: str, workspace: str) -> list[WorkspaceNote]:
    """Return a person's notes about a workspace, the oldest first."""
    mine = (WorkspaceNote.user_id == user_id, WorkspaceNote.workspace == workspace)
    return list(s.exec(select(WorkspaceNote).where(*mine).order_by(col(WorkspaceNote.seq))))


def remove(s: Session, seq: int) -> None:
    """Remove a note; harmless to repeat."""
    s.exec(delete(WorkspaceNote).where(col(WorkspaceNote.seq) == seq))
