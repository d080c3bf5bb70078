"""Fencing: a process of a cluster may write or not, and that is decided in the transaction that writes.

A lease (`storage.leases`) is a row with a token that grows with each new owner. A process knows its own tokens and its
sessions carry them; a write that needs a lease reads the row in its own transaction and is refused with an old token.
So a process that slept past its lease changes nothing (Kleppmann 2016, "How to do distributed locking"). A heed on one
machine carries no tokens, and nothing is refused.
"""

import threading

from sqlmodel import Session, select

from storage.errors import LeaseLost
from storage.leases import PERSON, Lease

KEY = "tokens"  # of a session's info


class Tokens:
    """The leases that one process believes to hold, by name; for all of its threads."""

    def __init__(self, owner: str) -> None:
        self.owner = owner
        self._lock = threading.Lock()
        self._tokens: dict[str, int] = {}

    def keep(self, name: str, token: int) -> None:
        """Remember a lease that was taken."""
        with self._lock:
            self._tokens[name] = token

    def drop(self, name: str) -> None:
        """Forget a lease; harmless if it was not held."""
        with self._lock:
            self._tokens.pop(name, None)

    def of(self, name: str) -> int | None:
        """Return the token of a lease, None if it is not held."""
        with self._lock:
            return self._tokens.get(name)

    def holds(self, s: Session, name: str) -> bool:
        """Return True if this process holds a lease now, and until the transaction ends."""
        row = s.exec(select(Lease).where(Lease.name == name).with_for_update(read=True)).first()
        return row is not None and row.owner == self.owner and row.token == self.of(name)


def check(s: Session, name: str) -> None:
    """Raise LeaseLost in a process of a cluster that does not hold a lease now, and until the transaction ends.

    One machine has no tokens, and is never refused.
    """
    tokens: Tokens | None = s.info.get(KEY)
    if tokens is not None and not tokens.holds(s, name):
        raise LeaseLost(f"this process does not hold {name}")


def person(user_id: str) -> str:
    """Return the name of the lease on a person's adapter."""
    return f"{PERSON}{user_id}"


def platform(name: str) -> str:
    """Return the name of the lease on a chat platform, which one gateway listens to and speaks on."""
    return f"platform/{name}"


def agent_work(work_id: str) -> str:
    """Return the name of the lease on an agent's session, which one gateway works on."""
    return f"agent/{work_id}"
