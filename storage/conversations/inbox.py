"""Platform updates that were taken, each committed before it is acknowledged.

An update takes effect once: its effect and mark_done share a transaction, and the effect is kept only if mark_done
says that it was not done yet. Within a chat updates come out in the order in which they came in.
"""

from dataclasses import dataclass

from sqlalchemy import ColumnElement, bindparam, false, func
from sqlmodel import Session, col, delete, select, update

from storage.sql import bulk_rows
from storage.tables import Inbox

_WAITING = (col(Inbox.seq) == bindparam("known_seq"), col(Inbox.is_done) == false())
_MARK_DONE = update(Inbox.__table__).where(*_WAITING).values(is_done=True, payload={})  # type: ignore[attr-defined]


@dataclass(frozen=True)
class Kept:
    """The keys of a platform that are not pruned: those that begin with one of `prefixes`, and the newest of each chat
    among those that begin with `newest` (empty: none).
    """

    prefixes: tuple[str, ...] = ()
    newest: str = ""


def add(s: Session, item: Inbox) -> tuple[Inbox, bool]:
    """Take an update and say whether it is new; the row given is not touched."""
    row = bulk_rows.add_new(s, item)
    if row is not None:
        return row, True
    same = (Inbox.platform == item.platform, Inbox.bot_id == item.bot_id, Inbox.update_id == item.update_id)
    return s.exec(select(Inbox).where(*same)).one(), False


def waiting(s: Session) -> list[Inbox]:
    """Everything that waits, oldest first."""
    return list(s.exec(select(Inbox).where(col(Inbox.is_done).is_(False)).order_by(col(Inbox.seq))))


def is_waiting(s: Session, seq: int) -> bool:
    """Return whether an update has neither taken effect nor been erased with the person who sent it."""
    item = s.get(Inbox, seq)
    return item is not None and not item.is_done


def begin_attempt(s: Session, seq: int) -> int:
    """Count an attempt at an update and return how many there were with this one; 0 if it waits no more."""
    item = s.get(Inbox, seq)
    if item is None or item.is_done:
        return 0
    item.attempts += 1
    return item.attempts


def put_off(s: Session, seq: int) -> None:
    """Count attempts at an update anew: it goes on waiting, and no one is to blame."""
    item = s.get(Inbox, seq)
    if item is not None:
        item.attempts = 0


def mark_done(s: Session, seq: int) -> bool:
    """Note that an update has taken effect, and drop its content; False if it was done before: undo the effect."""
    return bulk_rows.change(s, _MARK_DONE, {"known_seq": seq}) == 1


def num_waiting(s: Session) -> int:
    """How many updates wait."""
    return s.exec(select(func.count()).select_from(Inbox).where(col(Inbox.is_done).is_(False))).one()


def keys(s: Session, platform: str, bot_id: str, prefix: str) -> list[str]:
    """Return the update ids that begin with `prefix`, in the order in which they were taken."""
    return list(s.exec(select(Inbox.update_id).where(*_of(platform, bot_id, prefix)).order_by(col(Inbox.seq))))


def taken(s: Session, platform: str, bot_id: str, prefix: str) -> list[Inbox]:
    """Return the updates whose ids begin with `prefix`, in the order in which they were taken."""
    return list(s.exec(select(Inbox).where(*_of(platform, bot_id, prefix)).order_by(col(Inbox.seq))))


def newest_per_chat(s: Session, platform: str, bot_id: str, prefix: str) -> list[Inbox]:
    """Of each chat the update taken last among those whose ids begin with `prefix`; nothing of who was forgotten."""
    mine = (*_of(platform, bot_id, prefix), col(Inbox.chat_key) != "")
    newest = select(func.max(Inbox.seq)).where(*mine).group_by(col(Inbox.chat_key))
    return list(s.exec(select(Inbox).where(col(Inbox.seq).in_(newest))))


def oldest_waiting_s(s: Session, platform: str) -> float | None:
    """When the oldest update that waits was received, None where none does."""
    waits = (Inbox.platform == platform, col(Inbox.is_done).is_(False))
    return s.exec(select(func.min(Inbox.received_at)).where(*waits)).one()


def prune(s: Session, platform: str, received_before_s: float, kept: Kept, limit: int) -> int:
    """Drop the oldest keys of done updates that no platform delivers again; returns how many."""
    old = select(Inbox.seq).where(Inbox.platform == platform, col(Inbox.is_done).is_(True))
    old = old.where(col(Inbox.received_at) < received_before_s, *(~_begins(prefix) for prefix in kept.prefixes))
    if kept.newest:
        newest = select(func.max(Inbox.seq)).where(Inbox.platform == platform, _begins(kept.newest))
        old = old.where(col(Inbox.seq).not_in(newest.group_by(col(Inbox.bot_id), col(Inbox.chat_key))))
    old = old.order_by(col(Inbox.seq)).limit(limit)
    return s.exec(delete(Inbox).where(col(Inbox.seq).in_(old))).rowcount


def _of(platform: str, bot_id: str, prefix: str) -> tuple[ColumnElement[bool], ...]:
    return col(Inbox.platform) == platform, col(Inbox.bot_id) == bot_id, _begins(prefix)


def _begins(prefix: str) -> ColumnElement[bool]:
    return col(Inbox.update_id).startswith(prefix, autoescape=True)
