"""The outbox. The state machine over inbox and outbox is in test_delivery_machine.py."""

from storage import outbox
from storage.tables import Outbox, OutboxState
from tests.storage import rows
from tests.storage.conftest import Store


def _queue(store: Store, *items: tuple[str, str]) -> None:
    for item_id, chat_key in items:
        store.write(lambda s, item_id=item_id, chat_key=chat_key: outbox.add(s, rows.outbox(item_id, chat_key)))


def _lease(store: Store, now_s: float = 0.0, limit: int = 10) -> list[tuple[str, int]]:
    items = store.write(lambda s: outbox.lease(s, now_s=now_s, lease_s=30.0, limit=limit))
    return [(item.id, item.attempts) for item in items]


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


def test_one_sender_has_an_item_at_a_time(store: Store) -> None:
    """What is leased is not leased again before the lease runs out; then it is another attempt."""
    _queue(store, ("1", "a"))
    assert _lease(store, now_s=0.0) == [("1", 1)]
    assert _lease(store, now_s=29.9) == []
    assert _lease(store, now_s=30.0) == [("1", 2)]


def test_a_chat_gets_its_messages_in_order(store: Store) -> None:
    """The next message of a chat comes out when the one before is done; chats do not wait for one another."""
    _queue(store, ("1", "a"), ("2", "a"), ("3", "b"))
    assert _lease(store) == [("1", 1), ("3", 1)]
    assert _lease(store) == []
    assert store.write(lambda s: outbox.mark_done(s, "1", 1, "m17")) is True
    assert _lease(store) == [("2", 1)]


def test_the_limit_takes_the_oldest(store: Store) -> None:
    """With many chats due, those that wait longest go first."""
    _queue(store, *((str(n), f"chat {n}") for n in range(5)))
    assert _lease(store, limit=2) == [("0", 1), ("1", 1)]
    assert _lease(store, limit=2) == [("2", 1), ("3", 1)]


def test_a_sender_whose_lease_ran_out_changes_nothing(store: Store) -> None:
    """Only the attempt that holds the lease can finish, return or bury the item."""
    _queue(store, ("1", "a"))
    _lease(store, now_s=0.0)
    _lease(store, now_s=60.0)
    assert store.write(lambda s: outbox.mark_done(s, "1", 1)) is False
    assert store.write(lambda s: outbox.retry(s, "1", 1, 0.0)) is False
    assert store.write(lambda s: outbox.bury(s, "1", 1)) is False
    assert _get(store, "1").state == OutboxState.SENDING
    assert store.write(lambda s: outbox.mark_done(s, "1", 2)) is True
    assert store.write(lambda s: outbox.mark_done(s, "1", 2)) is False


def test_a_retry_waits_and_keeps_its_place(store: Store) -> None:
    """Until its time an item is not leased, and nothing of its chat overtakes it."""
    _queue(store, ("1", "a"), ("2", "a"))
    _lease(store, now_s=0.0)
    assert store.write(lambda s: outbox.retry(s, "1", 1, not_before_s=100.0)) is True
    assert _lease(store, now_s=99.0) == []
    assert _lease(store, now_s=100.0) == [("1", 2)]


def test_a_buried_item_lets_its_chat_go_on(store: Store) -> None:
    """What cannot be sent is kept for the operator and blocks nobody."""
    _queue(store, ("1", "a"), ("2", "a"))
    _lease(store)
    assert store.write(lambda s: outbox.bury(s, "1", 1)) is True
    assert _lease(store) == [("2", 1)]
    assert (_get(store, "1").state, _get(store, "1").payload) == (OutboxState.DEAD, {"text": "1"})


def test_a_done_item_keeps_the_message_id_and_no_content(store: Store) -> None:
    """What was shown can be edited later; its text is stored with the answer only."""
    _queue(store, ("1", "a"))
    _lease(store)
    store.write(lambda s: outbox.mark_done(s, "1", 1, "m17"))
    item = _get(store, "1")
    assert (item.state, item.external_message_id, item.payload) == (OutboxState.DONE, "m17", {})


def test_leases_end_with_the_run_that_took_them(store: Store) -> None:
    """After a restart everything open is due at once, whatever the clocks of the two runs say."""
    _queue(store, ("1", "a"), ("2", "b"))
    _lease(store, now_s=1e9, limit=1)
    store.write(lambda s: outbox.lease(s, now_s=1e9, lease_s=30.0, limit=1))
    store.write(lambda s: outbox.retry(s, "2", 1, 2e9))
    store.reopen()
    assert store.write(outbox.release_all) == 1
    assert _lease(store, now_s=0.0) == [("1", 2), ("2", 2)]


def test_an_unknown_item_is_none(store: Store) -> None:
    """Looking for an id that was never queued finds nothing, and it cannot be done."""
    assert store.read(lambda s: outbox.get(s, "nothing")) is None
    assert store.write(lambda s: outbox.mark_done(s, "nothing", 1)) is False


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
    """It keeps its place without its content."""
    store.write(lambda s: outbox.keep(s, rows.outbox("1")))
    assert store.write(lambda s: outbox.give_up(s, "1")) is True
    assert store.read(outbox.waiting) == []
    assert store.write(lambda s: outbox.give_up(s, "1")) is False
