"""What is to be shown on platforms, in order within a chat; an answer is a draft here while it is being written.

The one running heed owns every open item (`waiting`, `keep`, `finish`, `give_up`); senders that share a database lease
them one at a time instead (`lease`, `mark_done`, `retry`, `bury`).

A lease is held by its attempt number: a sender whose lease ran out and was given to another can no longer change
the item. Times are whatever clock the caller uses, the same one for every call of a run; release_all at start makes
leases of an earlier run void.
"""

from sqlalchemy import bindparam, func
from sqlmodel import Session, col, select, update

from storage import rows
from storage.tables import Outbox, OutboxState

_OPEN = (OutboxState.WAITING, OutboxState.SENDING)
_UNSHOWN = (*_OPEN, OutboxState.DRAFT)
_KNOWN = (col(Outbox.id) == bindparam("known_id"), col(Outbox.state).in_(_UNSHOWN))
_END = update(Outbox.__table__).where(*_KNOWN)  # type: ignore[attr-defined]
_FINISH = _END.values(state=OutboxState.DONE, payload={}, external_message_id=bindparam("message_id"))
_GIVE_UP = _END.values(state=OutboxState.DEAD, payload={})


def add(s: Session, item: Outbox) -> tuple[Outbox, bool]:
    """Queue something under its id and say whether it is new; the row given is not touched."""
    row = rows.add_new(s, item)
    return (row, True) if row is not None else (_known(s, item.id), False)


def lease(s: Session, *, now_s: float, lease_s: float, limit: int) -> list[Outbox]:
    """Take the oldest open item of each chat that is due, oldest first; `attempts` of each is the lease's number."""
    heads = select(func.min(Outbox.seq)).where(col(Outbox.state).in_(_OPEN))
    heads = heads.group_by(col(Outbox.platform), col(Outbox.chat_key))
    query = select(Outbox).where(col(Outbox.seq).in_(heads), col(Outbox.lease_until_s) <= now_s)
    items = list(s.exec(query.order_by(col(Outbox.seq)).limit(limit)))
    for item in items:
        item.state = OutboxState.SENDING
        item.attempts += 1
        item.lease_until_s = now_s + lease_s
    return items


def mark_done(s: Session, outbox_id: str, attempt: int, external_message_id: str = "") -> bool:
    """Note that it is shown, and drop its content; False if this attempt no longer holds the lease."""
    return _leave(s, outbox_id, attempt, state=OutboxState.DONE, payload={}, external_message_id=external_message_id)


def retry(s: Session, outbox_id: str, attempt: int, not_before_s: float) -> bool:
    """Give it back to be sent again from `not_before_s` on; False if this attempt no longer holds the lease."""
    return _leave(s, outbox_id, attempt, state=OutboxState.WAITING, lease_until_s=not_before_s)


def bury(s: Session, outbox_id: str, attempt: int) -> bool:
    """Give it up, so that its chat goes on; False if this attempt no longer holds the lease."""
    return _leave(s, outbox_id, attempt, state=OutboxState.DEAD)


def waiting(s: Session) -> list[Outbox]:
    """Every item that is to be shown, oldest first."""
    return list(s.exec(select(Outbox).where(col(Outbox.state).in_(_OPEN)).order_by(col(Outbox.seq))))


def keep(s: Session, item: Outbox) -> Outbox:
    """Store an item under its id as it is now, in place of what was known of it unless that is shown already."""
    row = rows.put_where(s, item, "id", ("payload", "state", "external_message_id"), _UNSHOWN)
    return row if row is not None else _known(s, item.id)


def finish(s: Session, outbox_id: str, external_message_id: str = "") -> bool:
    """Note that it is shown, and drop its content; False if it was shown or erased before."""
    return rows.change(s, _FINISH, {"known_id": outbox_id, "message_id": external_message_id}) == 1


def give_up(s: Session, outbox_id: str) -> bool:
    """Show it no more, and drop its content; False if that was settled before."""
    return rows.change(s, _GIVE_UP, {"known_id": outbox_id}) == 1


def get(s: Session, outbox_id: str) -> Outbox | None:
    """An item, None if there is none of that id."""
    return s.exec(select(Outbox).where(Outbox.id == outbox_id)).first()


def release_all(s: Session) -> int:
    """At start: nobody is sending and every wait is over; returns how many leases that ended."""
    waiting = col(Outbox.state) == OutboxState.WAITING
    s.exec(update(Outbox).where(waiting).values(lease_until_s=0.0))
    sending = col(Outbox.state) == OutboxState.SENDING
    return s.exec(update(Outbox).where(sending).values(state=OutboxState.WAITING, lease_until_s=0.0)).rowcount


def _known(s: Session, outbox_id: str) -> Outbox:
    return s.exec(select(Outbox).where(Outbox.id == outbox_id)).one()


def _leave(s: Session, outbox_id: str, attempt: int, **values: object) -> bool:
    held = (col(Outbox.id) == outbox_id, col(Outbox.state) == OutboxState.SENDING, col(Outbox.attempts) == attempt)
    return s.exec(update(Outbox).where(*held).values(**values)).rowcount == 1
