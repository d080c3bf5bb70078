"""storage.leases: one owner at a time, and a token that only grows."""

import pytest

from storage import leases
from storage.errors import LeaseHeld
from storage.people import people
from tests.storage.conftest import Store

FIRST, SECOND = "engine-1/a", "engine-2/b"


def test_another_one_waits_until_the_end(store: Store) -> None:
    """A held lease is refused to others, with its owner's name; its own owner lengthens it."""
    assert store.write(lambda s: leases.take(s, "telegram", FIRST, 60.0)).token == 1
    with pytest.raises(LeaseHeld, match="engine-1/a") as refused:
        store.write(lambda s: leases.take(s, "telegram", SECOND, 60.0))
    assert refused.value.owner == FIRST
    assert store.write(lambda s: leases.take(s, "telegram", FIRST, 60.0)).token == 1
    assert store.write(lambda s: leases.take(s, "discord/0", SECOND, 60.0)).token == 1


@pytest.mark.parametrize("is_released", [True, False])
def test_a_new_owner_has_a_higher_token(store: Store, *, is_released: bool) -> None:
    """After a release, or when its time is up, the next one may; the first has it again only with a third token."""
    store.write(lambda s: leases.take(s, "telegram", FIRST, 60.0 if is_released else -1.0))
    if is_released:
        store.write(lambda s: leases.release(s, "telegram", FIRST))
    assert store.read(lambda s: leases.of(s, "telegram")) is None
    assert store.write(lambda s: leases.take(s, "telegram", SECOND, -1.0)).token == 2
    assert store.write(lambda s: leases.take(s, "telegram", FIRST, 60.0)).token == 3


def test_renewing_says_what_is_still_held(store: Store) -> None:
    """A lease that another took is not renewed, one whose time was up is, if nobody took it."""
    store.write(lambda s: [leases.take(s, name, FIRST, -1.0) for name in ("a", "b")])
    store.write(lambda s: leases.take(s, "b", SECOND, 60.0))
    assert store.write(lambda s: leases.renew(s, ("a", "b", "c"), FIRST, 60.0)) == {"a"}
    assert store.read(lambda s: leases.of(s, "a")).owner == FIRST
    assert store.read(lambda s: leases.of(s, "b")).owner == SECOND


def test_releasing_what_another_holds_changes_nothing(store: Store) -> None:
    """Harmless: the holder still has it."""
    store.write(lambda s: leases.take(s, "a", FIRST, 60.0))
    store.write(lambda s: leases.release(s, "a", SECOND))
    store.write(lambda s: leases.release(s, "b", SECOND))
    assert store.read(lambda s: leases.of(s, "a")).owner == FIRST


def test_a_lease_on_a_person_goes_with_them(store: Store, ana: str) -> None:
    """Erasure leaves no row that names them."""
    store.write(lambda s: leases.take(s, f"person/{ana}", FIRST, 60.0, ana))
    store.write(lambda s: people.forget(s, ana))
    assert store.read(lambda s: leases.of(s, f"person/{ana}")) is None


def test_people_are_those_whose_leases_are_held(store: Store, ana: str, ben: str) -> None:
    """Not those whose leases have ended, and none of a lease that is about no person."""
    for user_id, owner, duration_s in ((ana, FIRST, 60.0), (ben, SECOND, -1.0)):
        store.write(lambda s: leases.take(s, f"person/{user_id}", owner, duration_s, user_id))  # noqa: B023
    store.write(lambda s: leases.take(s, "telegram", SECOND, 60.0))
    assert store.read(leases.people) == {ana}


def test_the_clock_is_the_database_s(store: Store) -> None:
    """Its seconds grow within one transaction, too."""
    first, second = store.read(lambda s: (leases.clock_s(s), leases.clock_s(s)))
    assert 1.7e9 < first <= second
