"""storage.sql.bulk_rows: whole rows by one statement, as the ORM would have stored them."""

import pytest

from storage.conversations import inbox, outbox
from storage.errors import ConstraintViolated
from storage.kinds import OutboxState
from storage.people import people
from storage.sql import bulk_rows as whole
from storage.tables import Identity, Inbox, MessageRole, Outbox
from tests.storage import rows
from tests.storage.conftest import Store


def test_a_row_is_stored_with_its_number(store: Store) -> None:
    """Every value comes back, the given row stays as it was."""
    given = rows.outbox("1", payload={"text": "ä"})
    stored = store.write(lambda s: whole.add(s, given))
    assert (given.seq, stored.seq) == (None, 1)
    assert store.read(lambda s: outbox.get(s, "1")) == stored


def test_what_is_taken_is_refused_or_left(store: Store) -> None:
    """`add` raises, `add_new` says None; the row that is there stays."""
    store.write(lambda s: whole.add(s, rows.outbox("1")))
    with pytest.raises(ConstraintViolated):
        store.write(lambda s: whole.add(s, rows.outbox("1", payload={})))
    assert store.write(lambda s: whole.add_new(s, rows.outbox("1", payload={}))) is None
    assert store.read(lambda s: outbox.get(s, "1")).payload == {"text": "1"}  # type: ignore[union-attr]


def test_a_row_may_refer_to_one_of_the_same_session(store: Store) -> None:
    """Rows waiting in the session are stored first."""

    def work(s: whole.Session) -> str:
        user = people.resolve(s, "http", "new")
        s.add(Identity(platform="cli", account="x", user_id=user.id))
        whole.put(s, MessageRole(platform="p", chat_external_id="c", message_id="m", user_id=user.id, role="lesson"))
        return user.id

    user_id = store.write(work)
    assert store.read(lambda s: people.find(s, "cli", "x")).id == user_id  # type: ignore[union-attr]


def test_put_replaces_by_primary_key(store: Store) -> None:
    """The later values stand."""
    ana = store.person("ana")
    for about in ("1", "2"):
        row = MessageRole(platform="p", chat_external_id="c", message_id="m", user_id=ana, role="lesson", about=about)
        store.write(lambda s, row=row: whole.put(s, row))
    assert store.read(lambda s: s.get(MessageRole, ("p", "c", "m"))).about == "2"  # type: ignore[union-attr]


def test_put_where_keeps_a_row_in_another_state(store: Store) -> None:
    """Only the named values change, and only in the named states."""
    values, states = ("payload", "state"), (OutboxState.WAITING,)
    store.write(lambda s: whole.add(s, rows.outbox("1", "a")))
    changed = rows.outbox("1", "b", payload={"n": 1}, state=OutboxState.DONE)
    assert store.write(lambda s: whole.put_where(s, changed, "id", values, states)) is not None
    known = store.read(lambda s: outbox.get(s, "1"))
    assert known is not None
    assert (known.chat_key, known.payload, known.state) == ("a", {"n": 1}, OutboxState.DONE)
    assert store.write(lambda s: whole.put_where(s, rows.outbox("1"), "id", values, states)) is None


def test_a_change_counts_its_rows(store: Store) -> None:
    """Through the prepared statements of inbox and outbox."""
    item: Inbox = store.write(lambda s: inbox.add(s, rows.inbox("1")))[0]
    assert [store.write(lambda s: inbox.mark_done(s, item.seq or 0)) for _ in range(2)] == [True, False]
    store.write(lambda s: whole.add(s, rows.outbox("1")))
    assert [store.write(lambda s: outbox.finish(s, "1", "m")) for _ in range(2)] == [True, False]
    shown: Outbox | None = store.read(lambda s: outbox.get(s, "1"))
    assert shown is not None
    assert (shown.state, shown.payload, shown.external_message_id) == (OutboxState.DONE, {}, "m")
