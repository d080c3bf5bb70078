"""Permissions, blocks and pairing codes of accounts."""

from storage.kinds import AccessState
from storage.people import access
from storage.tables import Pairing
from tests.storage.conftest import Store


def stranger(account: str, code: str, platform: str = "telegram", expires_at: float = 100.0) -> Pairing:
    """Return an account that was shown a code."""
    return Pairing(code=code, platform=platform, account=account, place="5", created_at=1.0, expires_at=expires_at)


def wait(store: Store, pairing: Pairing, now_s: float = 1.0) -> Pairing | None:
    """The code they wait with; at most three on a platform."""
    return store.write(lambda s: access.wait(s, pairing, now_s=now_s, limit=3))


def test_a_decision_is_kept_and_replaced(store: Store) -> None:
    """The newest decision about an account counts, after a restart too; others are not touched."""
    store.write(lambda s: access.decide(s, "telegram", "1", AccessState.ALLOWED, "telegram:9"))
    store.write(lambda s: access.decide(s, "discord", "1", AccessState.BLOCKED, "operator"))
    store.reopen()
    assert store.read(lambda s: access.state(s, "telegram", "1")) == AccessState.ALLOWED
    store.write(lambda s: access.decide(s, "telegram", "1", AccessState.BLOCKED, "telegram:9"))
    assert store.read(lambda s: access.state(s, "telegram", "1")) == AccessState.BLOCKED
    assert store.read(lambda s: access.state(s, "telegram", "2")) is None
    listed = store.read(access.decided)
    assert [(row.platform, row.account) for row in listed] == [("telegram", "1"), ("discord", "1")]


def test_an_account_waits_with_one_code(store: Store) -> None:
    """Asking again brings the same code while it holds, and a new one afterwards."""
    assert wait(store, stranger("1", "AAAAAAAA"))
    again = wait(store, stranger("1", "BBBBBBBB"), now_s=99.0)
    assert again is not None
    assert again.code == "AAAAAAAA"
    late = wait(store, stranger("1", "CCCCCCCC", expires_at=200.0), now_s=100.0)
    assert late is not None
    assert late.code == "CCCCCCCC"


def test_only_so_many_wait_on_a_platform(store: Store) -> None:
    """The fourth is turned away until a code has run out; another platform counts for itself."""
    for number in "123":
        assert wait(store, stranger(number, number * 8))
    assert wait(store, stranger("4", "44444444")) is None
    assert wait(store, stranger("4", "55555555", platform="discord"))
    assert wait(store, stranger("4", "44444444", expires_at=200.0), now_s=100.0)


def test_a_code_lets_one_account_in_once(store: Store) -> None:
    """Approving a code allows the account that waits with it; then the code is gone."""
    wait(store, stranger("1", "AAAAAAAA"))
    assert store.write(lambda s: access.approve(s, "BBBBBBBB", 2.0, "operator")) is None
    found = store.write(lambda s: access.approve(s, "AAAAAAAA", 2.0, "operator"))
    assert found is not None
    assert (found.platform, found.account, found.place) == ("telegram", "1", "5")
    assert store.read(lambda s: access.state(s, "telegram", "1")) == AccessState.ALLOWED
    assert store.write(lambda s: access.approve(s, "AAAAAAAA", 2.0, "operator")) is None


def test_a_code_that_ran_out_lets_nobody_in(store: Store) -> None:
    """At its end it is worth nothing and is not listed."""
    wait(store, stranger("1", "AAAAAAAA"))
    assert [row.code for row in store.read(lambda s: access.waiting(s, 99.0))] == ["AAAAAAAA"]
    assert store.read(lambda s: access.waiting(s, 100.0)) == []
    assert store.write(lambda s: access.approve(s, "AAAAAAAA", 100.0, "operator")) is None
    assert store.read(lambda s: access.state(s, "telegram", "1")) is None


def test_a_block_voids_a_code(store: Store) -> None:
    """An account blocked while it waits cannot use its old code."""
    wait(store, stranger("1", "AAAAAAAA"))
    store.write(lambda s: access.decide(s, "telegram", "1", AccessState.BLOCKED, "operator"))
    assert store.write(lambda s: access.approve(s, "AAAAAAAA", 2.0, "operator")) is None
    assert store.read(lambda s: access.state(s, "telegram", "1")) == AccessState.BLOCKED
