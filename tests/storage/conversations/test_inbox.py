"""The inbox. The state machine over inbox and outbox is in test_delivery_machine.py."""

import pytest
from sqlmodel import Session

from storage import settings
from storage.conversations import inbox
from storage.conversations.inbox import Kept
from storage.tables import Inbox
from tests.storage import rows
from tests.storage.conftest import Store

NOTHING = Kept()


def _take(store: Store, update_id: str, chat_key: str = "c1", **fields: object) -> Inbox:
    return store.write(lambda s: inbox.add(s, rows.inbox(update_id, chat_key, **fields)))[0]


def test_a_redelivered_update_is_taken_once(store: Store) -> None:
    """The same platform, bot and update id is known, while it waits, when it is done and after a restart."""
    given = rows.inbox("1")
    item, is_new = store.write(lambda s: inbox.add(s, given))
    assert is_new
    assert given.seq is None
    assert store.write(lambda s: inbox.add(s, rows.inbox("1")))[1] is False
    store.write(lambda s: inbox.mark_done(s, item.seq))
    store.reopen()
    assert store.write(lambda s: inbox.add(s, rows.inbox("1"))) == (store.read(lambda s: s.get(Inbox, item.seq)), False)


@pytest.mark.parametrize("other", [{"platform": "discord"}, {"bot_id": "8"}])
def test_the_same_number_elsewhere_is_another_update(store: Store, other: dict[str, object]) -> None:
    """Platforms and bots number their updates independently."""
    _take(store, "1")
    assert store.write(lambda s: inbox.add(s, rows.inbox("1", **other)))[1] is True


def test_an_update_takes_effect_once(store: Store) -> None:
    """Of two handlers that both finish, the second is told and undoes its effect."""
    item = _take(store, "1")

    def handle(s: Session) -> None:
        settings.put(s, "effects", settings.get(s, "effects", 0) + 1)
        if not inbox.mark_done(s, item.seq):
            raise LookupError

    store.write(handle)
    with pytest.raises(LookupError):
        store.write(handle)
    assert store.read(lambda s: settings.get(s, "effects")) == 1


def test_a_done_update_keeps_its_key_and_no_content(store: Store) -> None:
    """A done update keeps its key and drops the person's words."""
    item = _take(store, "1", payload={"text": "secret"})
    store.write(lambda s: inbox.mark_done(s, item.seq))
    stored = store.read(lambda s: s.get(Inbox, item.seq))
    assert (stored.update_id, stored.payload) == ("1", {})


def test_attempts_are_counted_while_it_waits(store: Store) -> None:
    """A poisonous update shows by its attempts; a done or unknown one has none."""
    item = _take(store, "1")
    assert [store.write(lambda s: inbox.begin_attempt(s, item.seq)) for _ in range(3)] == [1, 2, 3]
    store.write(lambda s: inbox.mark_done(s, item.seq))
    assert store.write(lambda s: inbox.begin_attempt(s, item.seq)) == 0
    assert store.write(lambda s: inbox.begin_attempt(s, 999)) == 0


def test_what_waits(store: Store) -> None:
    """Until it has taken effect; an update that was never taken does not."""
    item, _ = store.write(lambda s: inbox.add(s, rows.inbox("1")))
    assert store.read(lambda s: inbox.is_waiting(s, item.seq))
    store.write(lambda s: inbox.mark_done(s, item.seq))
    assert not store.read(lambda s: inbox.is_waiting(s, item.seq))
    assert not store.read(lambda s: inbox.is_waiting(s, 999))


def test_waiting_updates_are_counted(store: Store) -> None:
    """The cap on the backlog counts what waits, not what is done."""
    items = [_take(store, str(n)) for n in range(3)]
    store.write(lambda s: inbox.mark_done(s, items[0].seq))
    assert store.read(inbox.num_waiting) == 2


def _take_done(store: Store, update_id: str, chat_key: str = "c1", **fields: object) -> Inbox:
    item = _take(store, update_id, chat_key, **fields)
    store.write(lambda s: inbox.mark_done(s, item.seq or 0))
    return item


def _prune(store: Store, kept: Kept = NOTHING, limit: int = 100) -> int:
    return store.write(lambda s: inbox.prune(s, "telegram", 100.0, kept, limit))


def _keys(store: Store) -> list[str]:
    return store.read(lambda s: inbox.keys(s, "telegram", "7", ""))


def test_pruning_drops_old_done_updates_only(store: Store) -> None:
    """Pruning keeps waiting updates of any age, done updates that are new, and other platforms' updates."""
    _take_done(store, "1", received_at=10.0)
    _take(store, "2", received_at=10.0)
    _take_done(store, "3", received_at=1000.0)
    elsewhere = _take_done(store, "4", received_at=10.0, platform="discord")
    assert _prune(store) == 1
    assert _keys(store) == ["2", "3"]
    assert store.read(lambda s: s.get(Inbox, elsewhere.seq)) is not None


def test_pruning_takes_the_oldest_first(store: Store) -> None:
    """A few at a time, so that what is written meanwhile does not wait long."""
    for number in range(5):
        _take_done(store, str(number), received_at=10.0)
    assert _prune(store, limit=2) == 2
    assert _keys(store) == ["2", "3", "4"]
    assert [_prune(store, limit=2) for _ in range(3)] == [2, 1, 0]


def test_pruning_keeps_what_a_platform_needs(store: Store) -> None:
    """Keys that tell a state, and of each chat the newest of a kind, be it as old as it may."""
    for key, chat in (("m:1", "a"), ("m:2", "a"), ("e:2", "a"), ("m:3", "b"), ("s:0", "c"), ("i:4", "a")):
        _take_done(store, key, chat, received_at=10.0)
    assert _prune(store, Kept(prefixes=("s:",), newest="m:")) == 3
    assert _keys(store) == ["m:2", "m:3", "s:0"]
    assert _prune(store) == 3


def test_the_oldest_that_waits_is_known_by_its_time(store: Store) -> None:
    """Of one platform, and only what is not done."""
    assert store.read(lambda s: inbox.oldest_waiting_s(s, "telegram")) is None
    _take_done(store, "1", received_at=10.0)
    _take(store, "2", received_at=30.0)
    _take(store, "3", received_at=20.0, platform="discord")
    assert store.read(lambda s: inbox.oldest_waiting_s(s, "telegram")) == 30.0


def test_what_waits_comes_oldest_first(store: Store) -> None:
    """At a start everything that is not done is taken up in the order in which it came."""
    taken = [_take(store, str(number), f"c{number % 2}") for number in range(4)]
    store.write(lambda s: inbox.mark_done(s, taken[1].seq or 0))
    assert [row.update_id for row in store.read(inbox.waiting)] == ["0", "2", "3"]


def test_what_is_put_off_goes_on_waiting(store: Store) -> None:
    """However often heed ends meanwhile, the update is not to blame."""
    seq = _take(store, "1").seq or 0
    for _ in range(3):
        store.write(lambda s: inbox.begin_attempt(s, seq))
        store.write(lambda s: inbox.put_off(s, seq))
    assert store.write(lambda s: inbox.begin_attempt(s, seq)) == 1
