"""Tests of the keys of storage.conversations.inbox, and of the places of storage.conversations.chats."""

from storage.conversations import chats, inbox
from tests.storage.conftest import Store
from tests.storage.rows import inbox as row


def test_keys_come_in_the_order_in_which_they_were_taken(store: Store) -> None:
    """Keys are found by how they begin, also where they have characters a pattern would mean something by."""
    for key in ("m:2", "r:add:1:%:1", "m:1", "r:add:10:x:1"):
        store.write(lambda s, key=key: inbox.add(s, row(key)))
    assert store.read(lambda s: inbox.keys(s, "telegram", "7", "m:")) == ["m:2", "m:1"]
    assert store.read(lambda s: inbox.keys(s, "telegram", "7", "r:add:1:%")) == ["r:add:1:%:1"]
    assert store.read(lambda s: inbox.keys(s, "telegram", "8", "m:")) == []


def test_each_chat_has_its_newest_key(store: Store) -> None:
    """The last taken counts, of the wanted kind only; done updates count, too."""
    for key, chat in (("m:1", "a"), ("m:2", "b"), ("m:3", "a"), ("e:3:x", "a")):
        taken, _ = store.write(lambda s, key=key, chat=chat: inbox.add(s, row(key, chat)))
        store.write(lambda s, seq=taken.seq: inbox.mark_done(s, seq))
    newest = store.read(lambda s: inbox.newest_per_chat(s, "telegram", "7", "m:"))
    assert {row.chat_key: row.update_id for row in newest} == {"a": "m:3", "b": "m:2"}


def test_places_are_the_newest_first(store: Store) -> None:
    """A place where several people talk is one; another platform's are not there."""
    ana, ben = store.person("ana"), store.person("ben")
    for user, platform, place in (
        (ana, "discord", "1"),
        (ben, "discord", "1"),
        (ana, "discord", "2"),
        (ana, "web", "3"),
    ):
        store.write(lambda s, it=(user, platform, place): chats.resolve(s, *it))
    assert store.read(lambda s: chats.places(s, "discord", 5)) == ["2", "1"]
    assert len(store.read(lambda s: chats.places(s, "discord", 1))) == 1
