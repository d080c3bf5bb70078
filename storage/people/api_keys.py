"""API keys: whose each is, what it may do, and how much of its day is spent. Never a key itself, only its SHA-256.

Days are UTC dates such as "2026-11-22". A key that was revoked stays on record and opens nothing.
"""

import hashlib
import secrets
from typing import Literal

from sqlmodel import Session, col, select

from storage.errors import KeyNotFound
from storage.tables import ApiKey, copy_of, now_s

PREFIX = "heed_"  # so that a key that leaked is recognised by who finds it
TOKEN_BYTES = 32

Spending = Literal["messages", "updates"]


def new_token() -> str:
    """Return a fresh random key, as its holder is shown it."""
    return PREFIX + secrets.token_urlsafe(TOKEN_BYTES)


def digest(token: str) -> str:
    """Return what is stored of a key. It needs no salt and no stretching: no one can guess 32 random bytes."""
    return hashlib.sha256(token.encode("utf-8", "surrogateescape")).hexdigest()


def add(s: Session, key: ApiKey) -> ApiKey:
    """Store a key; the row given is not touched."""
    row = copy_of(key)
    s.add(row)
    s.flush()
    return row


def find(s: Session, sha256: str) -> ApiKey | None:
    """Return the key that opens something now and has this digest."""
    return s.exec(select(ApiKey).where(ApiKey.sha256 == sha256, col(ApiKey.revoked_at).is_(None))).first()


def is_any(s: Session) -> bool:
    """Return True if there is a key that opens something."""
    return s.exec(select(ApiKey.id).where(col(ApiKey.revoked_at).is_(None)).limit(1)).first() is not None


def everything(s: Session) -> list[ApiKey]:
    """Every key, revoked ones too, the oldest first: for the operator's list."""
    return list(s.exec(select(ApiKey).order_by(col(ApiKey.created_at), col(ApiKey.id))))


def revoke(s: Session, key_id: str) -> ApiKey:
    """Let a key open nothing any more; harmless to repeat. Raises KeyNotFound."""
    key = s.get(ApiKey, key_id)
    if key is None:
        raise KeyNotFound(f"no API key {key_id!r}")
    key.revoked_at = key.revoked_at or now_s()
    return key


def note_use(s: Session, key_id: str, at_s: float) -> None:
    """Note when a key was used last; of one that is gone there is nothing to note."""
    key = s.get(ApiKey, key_id)
    if key is not None:
        key.last_used_at = at_s


def spend(s: Session, key_id: str, what: Spending, day: str, at_s: float, number: int = 1) -> bool:
    """Count messages or updates of a key on a day; False where its quota is too small, and nothing is counted."""
    key = s.get(ApiKey, key_id, with_for_update=True)
    if key is None or key.revoked_at is not None:
        return False
    if key.counted_on != day:
        key.counted_on, key.num_messages, key.num_updates = day, 0, 0
    limit, spent = (
        (key.messages_per_day, key.num_messages) if what == "messages" else (key.updates_per_day, key.num_updates)
    )
    if limit is not None and spent + number > limit:
        return False
    setattr(key, f"num_{what}", spent + number)
    key.last_used_at = at_s
    return True
