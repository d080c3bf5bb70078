"""Adapter versions: numbers, pointer, damage. The state machine is in test_versions_machine.py."""

import pytest

from storage.errors import PersonNotFound, VersionNotFound, VersionPruned, VersionStateError
from storage.kinds import VersionState
from storage.learning import feedback, updates, versions
from storage.people import people
from storage.tables import AdapterVersion, UpdateRun
from tests.storage import rows
from tests.storage.conftest import Store


def _allocate(store: Store, user_id: str, parent: int = 0) -> AdapterVersion:
    return store.write(lambda s: versions.allocate(s, user_id, parent, "pocket", None, None))


def _accepted(store: Store, user_id: str, parent: int = 0) -> int:
    number = _allocate(store, user_id, parent).number
    store.write(lambda s: versions.accept(s, user_id, number, "ab" * 32, 1000))
    return number


def _active(store: Store, user_id: str) -> int:
    return store.read(lambda s: people.get(s, user_id)).active_version


def test_a_candidate_is_not_served(store: Store, ana: str) -> None:
    """Allocating moves no pointer; the row says where the files go and what it was made from."""
    version = store.write(lambda s: versions.allocate(s, ana, 0, "pocket", "fb-1", "upd-1"))
    assert (version.number, version.parent, version.state) == (1, 0, VersionState.CANDIDATE)
    assert version.path == f"adapters/{ana}/1"
    assert (version.base_model, version.feedback_id, version.update_id) == ("pocket", "fb-1", "upd-1")
    assert _active(store, ana) == 0


def test_accepting_flips_the_pointer_with_the_row(store: Store, ana: str) -> None:
    """Hash, size, state and the person's active version change in one transaction."""
    number = _allocate(store, ana).number
    store.write(lambda s: versions.accept(s, ana, number, "ab" * 32, 1000))
    version = store.read(lambda s: versions.get(s, ana, number))
    assert (version.state, version.sha256, version.size_bytes) == (VersionState.ACCEPTED, "ab" * 32, 1000)
    assert _active(store, ana) == number


def test_an_accept_that_fails_later_in_its_transaction_changes_nothing(store: Store, ana: str) -> None:
    """The flip is undone with everything else of the work."""
    number = _allocate(store, ana).number

    def work(s: object) -> None:
        versions.accept(s, ana, number, "ab" * 32, 1000)  # type: ignore[arg-type]
        raise LookupError

    with pytest.raises(LookupError):
        store.write(work)
    assert _active(store, ana) == 0
    assert store.read(lambda s: versions.get(s, ana, number)).state == VersionState.CANDIDATE


def test_a_rejected_candidate_changes_nothing_for_the_person(store: Store, ana: str) -> None:
    """The person keeps what they were served before, and the number is used up."""
    kept = _accepted(store, ana)
    rejected = _allocate(store, ana, kept).number
    store.write(lambda s: versions.reject(s, ana, rejected))
    assert _active(store, ana) == kept
    assert _allocate(store, ana, kept).number == 3


def test_only_an_open_candidate_is_given_up(store: Store, ana: str) -> None:
    """One that was accepted at that very moment stays, and one of a person who is gone is no error."""
    kept, left = _accepted(store, ana), _allocate(store, ana).number
    gone = [store.write(lambda s, n=n: versions.reject_open(s, ana, n)) for n in (kept, left, left, 99)]
    assert gone == [False, True, False, False]
    assert _active(store, ana) == kept


@pytest.mark.parametrize("move", ["accept", "reject"])
@pytest.mark.parametrize("state", ["accepted", "rejected", "damaged"])
def test_only_a_candidate_is_decided_on(store: Store, ana: str, state: str, move: str) -> None:
    """Accepting or rejecting twice, or a damaged version, is VersionStateError and changes nothing."""
    number = _allocate(store, ana).number
    decide = {
        "accepted": lambda s: versions.accept(s, ana, number, "ab" * 32, 1),
        "rejected": lambda s: versions.reject(s, ana, number),
        "damaged": lambda s: versions.mark_damaged(s, ana, number),
        "accept": lambda s: versions.accept(s, ana, number, "cd" * 32, 2),
        "reject": lambda s: versions.reject(s, ana, number),
    }
    store.write(decide[state])
    with pytest.raises(VersionStateError, match=f"Version {number} is {state}"):
        store.write(decide[move])
    assert store.read(lambda s: versions.get(s, ana, number)).state == state


def test_rolling_back_moves_the_pointer_and_nothing_else(store: Store, ana: str) -> None:
    """Any accepted version and the zero adapter can be activated; the former number is returned."""
    first = _accepted(store, ana)
    second = _accepted(store, ana, first)
    before = store.read(lambda s: versions.history(s, ana))
    assert store.write(lambda s: versions.activate(s, ana, first)) == second
    assert store.write(lambda s: versions.activate(s, ana, 0)) == first
    assert store.write(lambda s: versions.activate(s, ana, second)) == 0
    assert [v.model_dump() for v in store.read(lambda s: versions.history(s, ana))] == [v.model_dump() for v in before]


def test_after_a_roll_back_the_next_number_is_new(store: Store, ana: str) -> None:
    """Rolling back gives no number back."""
    first = _accepted(store, ana)
    _accepted(store, ana, first)
    store.write(lambda s: versions.activate(s, ana, first))
    assert _allocate(store, ana, first).number == 3


def test_a_number_is_not_given_out_again_after_its_row_is_gone(store: Store, ana: str) -> None:
    """Numbers come from the person, not from the rows that happen to be left."""
    newest = _allocate(store, ana).number
    store.write(lambda s: s.delete(versions.get(s, ana, newest)))
    assert _allocate(store, ana).number == newest + 1


@pytest.mark.parametrize("spoil", [None, versions.reject, versions.mark_damaged])
def test_only_an_accepted_version_is_activated(store: Store, ana: str, spoil: object) -> None:
    """A candidate, a rejected and a damaged version are refused."""
    number = _allocate(store, ana).number
    if spoil:
        store.write(lambda s: spoil(s, ana, number))  # type: ignore[operator]
    with pytest.raises(VersionStateError):
        store.write(lambda s: versions.activate(s, ana, number))


def test_a_damaged_active_version_falls_back_to_its_nearest_sound_ancestor(store: Store, ana: str) -> None:
    """The person is served the parent; if that is damaged too, its parent; in the end the zero adapter."""
    first = _accepted(store, ana)
    second = _accepted(store, ana, first)
    third = _accepted(store, ana, second)
    assert store.write(lambda s: versions.mark_damaged(s, ana, second)) == third
    assert store.write(lambda s: versions.mark_damaged(s, ana, third)) == first
    assert _active(store, ana) == first
    assert store.write(lambda s: versions.mark_damaged(s, ana, first)) == 0
    assert _active(store, ana) == 0


def test_an_adapter_id_is_never_given_out_again(store: Store, ana: str, ben: str) -> None:
    """After the newest person is erased the next version has a new lora_int_id: no cache can confuse the two."""
    _allocate(store, ana)
    newest = _allocate(store, ben).lora_int_id
    store.write(lambda s: people.forget(s, ben))
    assert _allocate(store, ana).lora_int_id > newest


def test_another_persons_version_does_not_exist(store: Store, ana: str, ben: str) -> None:
    """No call reaches another person's version, though the numbers are the same."""
    number = _accepted(store, ana)
    calls = [
        lambda s: versions.get(s, ben, number),
        lambda s: versions.accept(s, ben, number, "", 0),
        lambda s: versions.reject(s, ben, number),
        lambda s: versions.mark_damaged(s, ben, number),
        lambda s: versions.activate(s, ben, number),
        lambda s: versions.allocate(s, ben, number, "pocket", None, None),
    ]
    for call in calls:
        with pytest.raises(VersionNotFound):
            store.write(call)
    assert store.read(lambda s: versions.history(s, ben)) == []
    assert _active(store, ana) == number


def test_a_forgotten_person_gets_no_version(store: Store, ana: str) -> None:
    """An update that finishes after an erasure finds no person."""
    number = _allocate(store, ana).number
    store.write(lambda s: people.forget(s, ana))
    for call in (
        lambda s: versions.allocate(s, ana, 0, "pocket", None, None),
        lambda s: versions.accept(s, ana, number, "", 0),
    ):
        with pytest.raises(PersonNotFound):
            store.write(call)


def test_history_comes_newest_first(store: Store, ana: str) -> None:
    """All versions are listed, in every state."""
    first = _accepted(store, ana)
    store.write(lambda s: versions.reject(s, ana, _number(versions.allocate(s, ana, first, "pocket", None, None))))
    listed = [(v.number, v.state) for v in store.read(lambda s: versions.history(s, ana))]
    assert listed == [(2, VersionState.REJECTED), (1, VersionState.ACCEPTED)]


def _number(version: AdapterVersion) -> int:
    return version.number


def test_the_start_finds_what_an_interrupted_update_left(store: Store, ana: str, ben: str) -> None:
    """Candidates of everybody are unfinished; only candidates and accepted versions may have files."""
    accepted = _accepted(store, ana)
    candidate = _allocate(store, ben)
    rejected = _allocate(store, ana, accepted)
    store.write(lambda s: versions.reject(s, ana, rejected.number))
    store.reopen()
    assert [(v.user_id, v.number) for v in store.read(versions.unfinished)] == [(ben, candidate.number)]
    assert store.read(versions.known_paths) == {f"adapters/{ana}/{accepted}", candidate.path}


def _chain(store: Store, user_id: str, count: int) -> list[int]:
    """Versions, each on top of the one before; their numbers."""
    return [_accepted(store, user_id, _active(store, user_id)) for _ in range(count)]


def _prune(store: Store, user_id: str, keep: int, in_use: tuple[int, ...] = (), replaced: int = 0) -> list[int]:
    return [v.number for v in store.write(lambda s: versions.prune(s, user_id, keep, in_use, replaced))]


def _kept(store: Store, user_id: str) -> list[int]:
    rows = store.read(lambda s: versions.history(s, user_id))
    return sorted(v.number for v in rows if v.state == VersionState.ACCEPTED)


def test_the_newest_versions_are_kept(store: Store, ana: str, ben: str) -> None:
    """Older ones give up their files and keep their rows; another person's are not touched; again prunes nothing."""
    _chain(store, ana, 7)
    _chain(store, ben, 7)
    assert sorted(_prune(store, ana, 5)) == [1, 2]
    assert _kept(store, ana) == [3, 4, 5, 6, 7]
    assert _kept(store, ben) == [1, 2, 3, 4, 5, 6, 7]
    assert _prune(store, ana, 5) == []
    assert len(store.read(lambda s: versions.history(s, ana))) == 7


def test_the_active_version_and_the_one_below_it_are_kept(store: Store, ana: str) -> None:
    """After going back and learning on, /undo finds what it needs, however old it is."""
    _chain(store, ana, 6)
    store.write(lambda s: versions.activate(s, ana, 2))
    _accepted(store, ana, 2)
    assert sorted(_prune(store, ana, 3)) == [1, 3, 4, 5]
    assert _kept(store, ana) == [2, 6, 7]
    store.write(lambda s: versions.activate(s, ana, 2))
    assert _prune(store, ana, 2) == [6]
    assert _active(store, ana) == 2


def test_below_a_damaged_version_the_next_good_one_is_kept(store: Store, ana: str) -> None:
    """/undo goes past the damaged one, so what it arrives at stays."""
    _chain(store, ana, 4)
    store.write(lambda s: versions.mark_damaged(s, ana, 3))
    assert sorted(_prune(store, ana, 2)) == [1]
    assert _kept(store, ana) == [2, 4]


def test_a_version_in_use_is_kept_until_the_next_time(store: Store, ana: str) -> None:
    """A request that holds it would lose it."""
    _chain(store, ana, 4)
    held = store.read(lambda s: versions.get(s, ana, 1)).lora_int_id or 0
    assert _prune(store, ana, 2, (held,)) == [2]
    assert _prune(store, ana, 2) == [1]


def test_a_version_that_another_replaces_is_given_up(store: Store, ana: str) -> None:
    """However new it is, unless a request holds it."""
    _chain(store, ana, 2)
    _accepted(store, ana, 1)
    held = store.read(lambda s: versions.get(s, ana, 2)).lora_int_id or 0
    assert _prune(store, ana, 5, (held,), replaced=2) == []
    assert _prune(store, ana, 5, replaced=2) == [2]
    assert _kept(store, ana) == [1, 3]


def test_the_base_model_and_candidates_are_not_pruned(store: Store, ana: str) -> None:
    """A person who has gone back to the base keeps the newest version, and a running update its candidate."""
    _chain(store, ana, 3)
    _allocate(store, ana, 3)
    store.write(lambda s: versions.activate(s, ana, 0))
    assert _prune(store, ana, 2) == [1]
    assert store.read(lambda s: versions.get(s, ana, 4)).state == VersionState.CANDIDATE


def test_a_pruned_version_cannot_be_gone_back_to(store: Store, ana: str) -> None:
    """It is said that its files are gone, nothing changes, and damage to what is gone is none."""
    _chain(store, ana, 3)
    _prune(store, ana, 2)
    with pytest.raises(VersionPruned, match=r"Version 1 is not kept any more.*/versions lists them"):
        store.write(lambda s: versions.activate(s, ana, 1))
    assert store.write(lambda s: versions.mark_damaged(s, ana, 1)) == 3
    assert store.read(lambda s: versions.get(s, ana, 1)).state == VersionState.PRUNED
    assert f"adapters/{ana}/1" not in store.read(versions.known_paths)


def test_the_lineage_says_what_taught_and_made_each_version(store: Store, ana: str, ben: str) -> None:
    """Newest first, with the feedback and the update where there are any, of this person only."""
    taught = store.write(lambda s: feedback.add(s, rows.feedback(ana, text="too long"))[0])
    run = store.write(lambda s: updates.start(s, UpdateRun(user_id=ana)))
    store.write(lambda s: versions.allocate(s, ana, 0, "pocket", taught.id, run.id))
    _accepted(store, ana)
    _accepted(store, ben)
    known = store.read(lambda s: versions.lineage(s, ana))
    assert [(v.number, f and f.text, u and u.id) for v, f, u in known] == [(2, None, None), (1, "too long", run.id)]
