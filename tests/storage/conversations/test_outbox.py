"""The outbox. The state machine over inbox and outbox is in test_delivery_machine.py."""

from sqlmodel import select

from storage.conversations import outbox
from storage.kinds import OutboxState
from storage.tables import Outbox
from tests.storage import rows
from tests.storage.conftest import Store


def _queue(store: Store, *items: tuple[str, str]) -> None:
    for item_id, chat_key in items:
        store.write(lambda s, item_id=item_id, chat_key=chat_key: outbox.add(s, rows.outbox(item_id, chat_key)))


def _get(store: Store, item_id: str) -> Outbox:
    item = store.read(lambda s: outbox.get(s, item_id))
    assert item is not None
    return item


def test_the_same_id_is_queued_once(store: Store) -> None:
    """An effect that runs again queues nothing twice; the first content stands."""
    given = rows.outbox("1")
    assert store.write(lambda s: outbox.add(s, given))[1] is True
    item, is_new = store.write(lambda s: outbox.add(s, rows.outbox("1", payload={"text": "other"})))
    assert (item.payload, is_new) == ({"text": "1"}, False)
    assert given.seq is None


def test_what_waits_comes_oldest_first(store: Store) -> None:
    """In the order of queueing, over all chats; what was shown or given up is not there."""
    _queue(store, ("1", "a"), ("2", "b"), ("3", "a"), ("4", "a"))
    store.write(lambda s: outbox.finish(s, "1", "m17"))
    store.write(lambda s: outbox.give_up(s, "3"))
    store.reopen()
    assert [item.id for item in store.read(outbox.waiting)] == ["2", "4"]


def test_a_shown_item_keeps_the_message_id_and_neither_content_nor_chat(store: Store) -> None:
    """In private the number of a chat is that of a person."""
    _queue(store, ("1", "a"))
    assert store.write(lambda s: outbox.finish(s, "1", "m17")) is True
    item = _get(store, "1")
    assert (item.state, item.external_message_id) == (OutboxState.DONE, "m17")
    assert (item.payload, item.chat_key) == ({}, "")


def test_an_unknown_item_is_none(store: Store) -> None:
    """Looking for an id that was never queued finds nothing, and it cannot be shown or given up."""
    assert store.read(lambda s: outbox.get(s, "nothing")) is None
    assert store.write(lambda s: outbox.finish(s, "nothing")) is False
    assert store.write(lambda s: outbox.give_up(s, "nothing")) is False


def test_an_answer_is_a_draft_until_it_is_to_be_shown(store: Store) -> None:
    """A draft is nothing to send; kept again with its text it is, and once shown it stays shown."""
    draft = rows.outbox("answer-1", state=OutboxState.DRAFT, external_message_id="7")
    store.write(lambda s: outbox.keep(s, draft))
    assert store.read(outbox.waiting) == []
    final = rows.outbox("answer-1", state=OutboxState.WAITING, external_message_id="7", payload={"text": "done"})
    store.write(lambda s: outbox.keep(s, final))
    assert [item.payload for item in store.read(outbox.waiting)] == [{"text": "done"}]
    assert store.write(lambda s: outbox.finish(s, "answer-1", "7")) is True
    assert store.write(lambda s: outbox.finish(s, "answer-1", "7")) is False
    assert store.write(lambda s: outbox.keep(s, draft)).state == OutboxState.DONE
    assert store.read(outbox.waiting) == []


def test_what_is_given_up_is_not_shown(store: Store) -> None:
    """It keeps its id without its content."""
    store.write(lambda s: outbox.keep(s, rows.outbox("1")))
    assert store.write(lambda s: outbox.give_up(s, "1")) is True
    assert store.read(outbox.waiting) == []
    assert store.write(lambda s: outbox.give_up(s, "1")) is False


def test_pruning_leaves_what_waits_what_is_new_and_other_platforms(store: Store) -> None:
    """The oldest go first, so many at a time as asked for."""
    for number, fields in enumerate(({}, {}, {}, {"created_at": 200.0}, {"platform": "discord"}, {})):
        row = rows.outbox(str(number), **({"created_at": 10.0} | fields))
        store.write(lambda s, row=row: outbox.add(s, row))
    for item_id in "0", "1", "3", "4":
        store.write(lambda s, item_id=item_id: outbox.finish(s, item_id))
    store.write(lambda s: outbox.keep(s, rows.outbox("2", state=OutboxState.DRAFT)))
    assert [store.write(lambda s: outbox.prune(s, "telegram", 100.0, 2)) for _ in range(3)] == [2, 1, 0]
    assert [item.id for item in store.read(lambda s: list(s.exec(select(Outbox).order_by("seq"))))] == ["3", "4", "5"]
