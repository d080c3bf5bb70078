"""API keys in storage: found by digest, counted by day, and never there in words."""

import pytest

from storage.errors import KeyNotFound
from storage.people import api_keys
from storage.tables import ApiKey
from tests.storage.conftest import Store

DAY = "2026-11-22"


@pytest.fixture
def key(store: Store) -> ApiKey:
    """A key of ana with small quotas."""
    row = ApiKey(
        account="ana", sha256=api_keys.digest("heed_x"), scopes=["chat"], messages_per_day=2, updates_per_day=1
    )
    return store.write(lambda s: api_keys.add(s, row))


def test_a_token_is_recognisable_and_never_the_same() -> None:
    """It begins with heed_ and carries 32 random bytes."""
    tokens = {api_keys.new_token() for _ in range(100)}
    assert len(tokens) == 100
    assert all(token.startswith("heed_") and len(token) == len("heed_") + 43 for token in tokens)


def test_a_key_is_found_by_its_digest_until_it_is_revoked(store: Store, key: ApiKey) -> None:
    """The row stays on record, and revoking again changes nothing."""
    assert store.read(lambda s: api_keys.find(s, api_keys.digest("heed_x"))).id == key.id  # type: ignore[union-attr]
    assert store.read(lambda s: api_keys.find(s, api_keys.digest("heed_y"))) is None
    assert store.read(api_keys.is_any)
    revoked = store.write(lambda s: api_keys.revoke(s, key.id))
    assert store.write(lambda s: api_keys.revoke(s, key.id)).revoked_at == revoked.revoked_at
    assert store.read(lambda s: api_keys.find(s, api_keys.digest("heed_x"))) is None
    assert not store.read(api_keys.is_any)
    assert [row.id for row in store.read(api_keys.everything)] == [key.id]


def test_a_key_nobody_made_cannot_be_revoked(store: Store) -> None:
    """KeyNotFound."""
    with pytest.raises(KeyNotFound, match="key-none"):
        store.write(lambda s: api_keys.revoke(s, "key-none"))


def test_a_day_is_spent_once_and_the_next_is_new(store: Store, key: ApiKey) -> None:
    """Messages and updates count apart; what is refused is not counted; a restart gives nothing back."""

    def spend(what: api_keys.Spending, day: str = DAY) -> bool:
        return store.write(lambda s: api_keys.spend(s, key.id, what, day, 5.0))

    assert [spend("messages"), spend("messages"), spend("messages")] == [True, True, False]
    store.reopen()
    assert not spend("messages")
    assert [spend("updates"), spend("updates")] == [True, False]
    assert spend("messages", "2026-11-23")
    row = store.read(api_keys.everything)[0]
    assert (row.counted_on, row.num_messages, row.num_updates, row.last_used_at) == ("2026-11-23", 1, 0, 5.0)


def test_several_are_spent_together_or_not_at_all(store: Store, key: ApiKey) -> None:
    """Of two messages a day three are none."""
    assert [store.write(lambda s, n=n: api_keys.spend(s, key.id, "messages", DAY, 5.0, n)) for n in (3, 2, 1)] == [
        False,
        True,
        False,
    ]


def test_a_revoked_key_spends_nothing(store: Store, key: ApiKey) -> None:
    """Also where it was let in a moment before."""
    store.write(lambda s: api_keys.revoke(s, key.id))
    assert not store.write(lambda s: api_keys.spend(s, key.id, "messages", DAY, 5.0))


def test_the_last_use_is_noted(store: Store, key: ApiKey) -> None:
    """Of a key that is there; of another there is nothing to note."""
    store.write(lambda s: (api_keys.note_use(s, key.id, 7.0), api_keys.note_use(s, "key-none", 7.0)))
    assert store.read(api_keys.everything)[0].last_used_at == 7.0
