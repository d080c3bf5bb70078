"""Leases: something is one process's alone for a time, by the database's own clock.

Invariants: at any moment a lease has one owner at most; its token grows with each new owner and never falls, since a
row stays when it ends (an erased person's goes with them, and nothing of theirs is left to be written).
"""

from collections.abc import Collection
from typing import Any

from sqlalchemy import text
from sqlmodel import Field, Session, SQLModel, col, select, update

from storage.errors import LeaseHeld
from storage.tables import now_s  # the module names the constraints of every table

PERSON = "person/"  # what the names of leases on people begin with
_CLOCK = text("SELECT extract(epoch FROM clock_timestamp())")


class Lease(SQLModel, table=True):
    """Something that one process of a cluster does at a time. A row stays when it ends: its token only grows."""

    name: str = Field(primary_key=True)  # "person/<user id>", "telegram", ...
    user_id: str | None = Field(default=None, foreign_key="user.id", index=True)  # None: not about one person
    owner: str = ""
    token: int = 0
    ends_at: float = 0.0  # seconds since the epoch, by the database's clock


def take(s: Session, name: str, owner: str, duration_s: float, user_id: str | None = None) -> Lease:
    """Take a lease, or lengthen one that `owner` holds already. Raises LeaseHeld if it is another's still.

    `user_id` names the person that it is about, so that it is erased with them.
    """
    row, now_s = s.get(Lease, name, with_for_update=True), clock_s(s)
    if row is None:
        row = Lease(name=name, user_id=user_id, owner=owner, token=1)
        s.add(row)
    elif row.owner != owner:
        if row.ends_at > now_s:
            raise LeaseHeld(f"{name} is held by {row.owner} for another {row.ends_at - now_s:.1f} s", row.owner)
        row.owner, row.token = owner, row.token + 1
    row.ends_at = now_s + duration_s
    s.flush()
    return row


def renew(s: Session, names: Collection[str], owner: str, duration_s: float) -> set[str]:
    """Lengthen leases of `owner`. Return those that still are; one whose time was up is, if no other took it."""
    held: Any = (col(Lease.name).in_(names), col(Lease.owner) == owner)
    s.exec(update(Lease).where(*held).values(ends_at=clock_s(s) + duration_s))
    return set(s.exec(select(Lease.name).where(*held)))


def release(s: Session, name: str, owner: str) -> None:
    """End a lease now, if it is `owner`'s: the next one need not wait."""
    row = s.get(Lease, name, with_for_update=True)
    if row is not None and row.owner == owner:
        row.ends_at = 0.0


def of(s: Session, name: str) -> Lease | None:
    """Return a lease that has not ended, None if there is none."""
    row = s.get(Lease, name)
    return row if row is not None and row.ends_at > clock_s(s) else None


def people(s: Session) -> set[str]:
    """Return the people whose leases are held now."""
    held = select(Lease.user_id).where(col(Lease.name).startswith(PERSON), Lease.ends_at > clock_s(s))
    return {str(user_id) for user_id in s.exec(held)}


def clock_s(s: Session) -> float:
    """Return seconds since the epoch by the database's clock; SQLite's is this machine's."""
    if s.get_bind().dialect.name == "sqlite":
        return now_s()
    return float(s.execute(_CLOCK).scalar_one())
