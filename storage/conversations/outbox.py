"""The outbox: what is to be shown on platforms, in order within a chat; an answer being written is a draft here.

The one running heed owns every open item. One that was shown or given up keeps its id, so that it is queued and shown
once, and the id of its message; its content and its chat are dropped.
"""

from sqlalchemy import bindparam
from sqlmodel import Session, col, delete, select, update

from storage.kinds import OutboxState
from storage.sql import bulk_rows
from storage.tables import Outbox

_UNSHOWN = (OutboxState.WAITING, OutboxState.DRAFT)
_KNOWN = (col(Outbox.id) == bindparam("known_id"), col(Outbox.state).in_(_UNSHOWN))
_END = update(Outbox.__table__).where(*_KNOWN).values(payload={}, chat_key="")  # type: ignore[attr-defined]
_FINISH = _END.values(state=OutboxState.DONE, external_message_id=bindparam("message_id"))
_GIVE_UP = _END.values(state=OutboxState.DEAD)


def add(s: Session, item: Outbox) -> tuple[Outbox, bool]:
    """Queue something under its id and say whether it is new; the row given is not touched."""
    row = bulk_rows.add_new(s, item)
    return (row, True) if row is not None else (_known(s, item.id), False)


def waiting(s: Session) -> list[Outbox]:
    """Every item that is to be shown, oldest first."""
    return list(s.exec(select(Outbox).where(Outbox.state == OutboxState.WAITING).order_by(col(Outbox.seq))))


def keep(s: Session, item: Outbox) -> Outbox:
    """Store an item under its id as it is now, in place of what was known of it unless that is shown already."""
    row = bulk_rows.put_where(s, item, "id", ("payload", "state", "external_message_id"), _UNSHOWN)
    return row if row is not None else _known(s, item.id)


def finish(s: Session, outbox_id: str, external_message_id: str = "") -> bool:
    """Note that it is shown, and drop its content; False if it was shown or erased before."""
    return bulk_rows.change(s, _FINISH, {"known_id": outbox_id, "message_id": external_message_id}) == 1


def give_up(s: Session, outbox_id: str) -> bool:
    """Show it no more, and drop its content; False if that was settled before."""
    return bulk_rows.change(s, _GIVE_UP, {"known_id": outbox_id}) == 1


def get(s: Session, outbox_id: str) -> Outbox | None:
    """Return an item, None if there is none of that id."""
    return s.exec(select(Outbox).where(Outbox.id == outbox_id)).first()


def prune(s: Session, platform: str, made_before_s: float, limit: int) -> int:
    """Drop the oldest items that do not wait; returns how many. An update that waits must be younger than these."""
    old = (Outbox.platform == platform, Outbox.state != OutboxState.WAITING, col(Outbox.created_at) < made_before_s)
    oldest = select(Outbox.seq).where(*old).order_by(col(Outbox.seq)).limit(limit)
    return s.exec(delete(Outbox).where(col(Outbox.seq).in_(oldest))).rowcount


def _known(s: Session, outbox_id: str) -> Outbox:
    return s.exec(select(Outbox).where(Outbox.id == outbox_id)).one()
