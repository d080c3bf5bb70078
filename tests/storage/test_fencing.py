"""storage.fencing: tokens of a process, and what a session without the right one may not write."""

from collections.abc import Callable

import pytest
from sqlmodel import Session

from storage import fencing, leases
from storage.errors import LeaseLost
from storage.fencing import Tokens
from storage.kinds import VersionState
from storage.learning import versions
from tests.storage.conftest import Store

WRITES: dict[str, Callable[[Session, str], object]] = {
    "allocate": lambda s, ana: versions.allocate(s, ana, 0, "pocket", None, None),
    "accept": lambda s, ana: versions.accept(s, ana, 1, "0", 1),
    "reject": lambda s, ana: versions.reject(s, ana, 1),
    "activate": lambda s, ana: versions.activate(s, ana, 0),
    "mark_damaged": lambda s, ana: versions.mark_damaged(s, ana, 1),
    "prune": lambda s, ana: versions.prune(s, ana, 1),
}


def _as(tokens: Tokens, work: Callable[[Session], object]) -> Callable[[Session], object]:
    def fenced(s: Session) -> object:
        s.info[fencing.KEY] = tokens
        return work(s)

    return fenced


@pytest.fixture
def tokens(store: Store, ana: str) -> Tokens:
    """The tokens of a process that holds ana's lease; she has a candidate."""
    store.write(lambda s: versions.allocate(s, ana, 0, "pocket", None, None))
    tokens = Tokens("engine-1")
    lease = store.write(lambda s: leases.take(s, fencing.person(ana), tokens.owner, -1.0, ana))
    tokens.keep(lease.name, lease.token)
    return tokens


@pytest.mark.parametrize("name", WRITES)
def test_the_holder_writes_versions(store: Store, ana: str, tokens: Tokens, name: str) -> None:
    """Also after its time was up: what counts is that nobody else took the lease."""
    store.write(_as(tokens, lambda s: WRITES[name](s, ana)))


@pytest.mark.parametrize("name", WRITES)
def test_a_stale_token_is_refused_in_the_transaction(store: Store, ana: str, tokens: Tokens, name: str) -> None:
    """A process that slept past its lease changes nothing."""
    store.write(lambda s: leases.take(s, fencing.person(ana), "engine-2", 60.0, ana))
    with pytest.raises(LeaseLost, match="does not hold"):
        store.write(_as(tokens, lambda s: WRITES[name](s, ana)))
    assert [v.state for v in store.read(lambda s: versions.history(s, ana))] == [VersionState.CANDIDATE]


@pytest.mark.parametrize("name", WRITES)
def test_a_process_without_a_lease_is_refused(store: Store, ana: str, tokens: Tokens, name: str) -> None:
    """So is one of the same owner that never took it, and one that dropped it."""
    tokens.drop(fencing.person(ana))
    with pytest.raises(LeaseLost):
        store.write(_as(tokens, lambda s: WRITES[name](s, ana)))
    with pytest.raises(LeaseLost):
        store.write(_as(Tokens("engine-1"), lambda s: WRITES[name](s, ana)))


def test_one_machine_needs_no_lease(store: Store, ana: str) -> None:
    """A session without tokens writes as it always did."""
    store.write(lambda s: versions.allocate(s, ana, 0, "pocket", None, None))
    assert store.write(lambda s: versions.accept(s, ana, 1, "0", 1)).state == VersionState.ACCEPTED


def test_tokens_are_kept_by_name() -> None:
    """What was taken last counts; what was dropped is gone, and dropping is harmless."""
    tokens = Tokens("engine-1")
    tokens.keep("a", 1)
    tokens.keep("b", 4)
    tokens.keep("a", 3)
    tokens.drop("b")
    tokens.drop("b")
    assert (tokens.of("a"), tokens.of("b")) == (3, None)
