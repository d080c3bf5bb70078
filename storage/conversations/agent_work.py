"""Sessions of agents: each with its state, which only the process that works on it changes."""

from typing import Any

from sqlmodel import Session, col, delete, select, update

from storage import fencing
from storage.errors import AgentWorkNotFound
from storage.tables import AgentWork, copy_of


def add(s: Session, work: AgentWork) -> AgentWork:
    """Store a session that begins; returns the stored row, the row given is not touched."""
    row = copy_of(work)
    s.add(row)
    s.flush()
    return row


def add_newest(s: Session, work: AgentWork, most: int) -> tuple[AgentWork, list[str]]:
    """Store a session that begins, and remove the oldest of its person beyond so many; returns it and the removed ids.

    One that is worked on in a chat stays.
    """
    added = add(s, work)
    gone = [row.id for row in of_person(s, work.user_id)[most:] if not row.place]
    s.exec(delete(AgentWork).where(col(AgentWork.id).in_(gone)))
    return added, gone


def get(s: Session, user_id: str, work_id: str) -> AgentWork:
    """Return a person's session. Raises AgentWorkNotFound, also if it is another person's."""
    row = s.exec(select(AgentWork).where(AgentWork.id == work_id, AgentWork.user_id == user_id)).first()
    if row is None:
        raise AgentWorkNotFound(f"no session {work_id!r}")
    return row


def of_person(s: Session, user_id: str) -> list[AgentWork]:
    """Return a person's sessions, the newest first."""
    return list(s.exec(select(AgentWork).where(AgentWork.user_id == user_id).order_by(col(AgentWork.seq).desc())))


def in_chat(s: Session, user_id: str, place: str) -> AgentWork | None:
    """Return the session that a person works on in a chat, None if there is none; of two the newer."""
    query = select(AgentWork).where(AgentWork.user_id == user_id, AgentWork.place == place)
    return s.exec(query.order_by(col(AgentWork.seq).desc()).limit(1)).first()


def leave(s: Session, user_id: str, place: str) -> None:
    """Let a person's chat be an ordinary one again; the session stays. Harmless to repeat."""
    s.exec(update(AgentWork).where(col(AgentWork.user_id) == user_id, col(AgentWork.place) == place).values(place=""))


def keep(s: Session, work_id: str, state: dict[str, Any]) -> None:
    """Put a state in place of the one before; nothing happens to a session that was removed meanwhile.

    Raises LeaseLost in a gateway that has lost the session to another one.
    """
    fencing.check(s, fencing.agent_work(work_id))
    s.exec(update(AgentWork).where(col(AgentWork.id) == work_id).values(state=state))


def remove(s: Session, user_id: str, work_id: str) -> None:
    """Remove a person's session; harmless to repeat."""
    s.exec(delete(AgentWork).where(col(AgentWork.id) == work_id, col(AgentWork.user_id) == user_id))
