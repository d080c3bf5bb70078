"""Better answers belong to one person, are tried again and are consolidated."""

from typing import Any

from storage.kinds import BetterState
from storage.learning import better_answers
from storage.tables import BetterAnswer
from tests.storage.conftest import Store


def better(store: Store, user_id: str, completion_id: str = "cmpl-1", **fields: Any) -> BetterAnswer:
    """A stored try."""
    values: dict[str, Any] = {"text": "Better.", "source": "base model", "notes": [], "state": BetterState.ACCEPTED}
    row = BetterAnswer(user_id=user_id, completion_id=completion_id, **(values | fields))
    return store.write(lambda s: better_answers.add(s, row))


def test_what_waits_is_accepted_new_and_the_persons_own(store: Store, ana: str, ben: str) -> None:
    """Oldest first; a consolidation takes it in, and then it waits no more."""
    first, second = better(store, ana), better(store, ana, "cmpl-2")
    better(store, ana, "cmpl-3", state=BetterState.REJECTED)
    others = better(store, ben)
    waiting = [row.id for row in store.read(lambda s: better_answers.waiting(s, ana))]
    assert waiting == [first.id, second.id]
    store.write(lambda s: better_answers.take_in(s, ana, "upd-1", [first.id, others.id]))
    store.write(lambda s: better_answers.take_in(s, ana, "upd-2", [first.id]))
    assert [row.id for row in store.read(lambda s: better_answers.waiting(s, ana))] == [second.id]
    assert [row.id for row in store.read(lambda s: better_answers.waiting(s, ben))] == [others.id]
    taken = store.read(lambda s: better_answers.recent(s, ana, 9))
    assert {row.id: row.consolidated_by for row in taken}[first.id] == "upd-1"


def test_a_judged_answer_is_settled_and_a_failed_one_after_some_tries(store: Store, ana: str, ben: str) -> None:
    """Accepted or rejected once; rubbish three times; another person's tries mean nothing."""
    better(store, ana, "accepted")
    better(store, ana, "rejected", state=BetterState.REJECTED)
    for name, number in (("twice", 2), ("thrice", 3)):
        for _ in range(number):
            better(store, ana, name, state=BetterState.FAILED)
    better(store, ben, "bens")
    asked = ["accepted", "rejected", "twice", "thrice", "bens", "never"]
    assert store.read(lambda s: better_answers.settled(s, ana, asked, 3)) == {"accepted", "rejected", "thrice"}


def test_by_answer_only_accepted_ones_are_shown(store: Store, ana: str, ben: str) -> None:
    """Each accepted answer comes with its source; no other person's is shown."""
    better(store, ana, "one", source="m at h")
    better(store, ana, "two", state=BetterState.REJECTED)
    better(store, ben, "three")
    found = store.read(lambda s: better_answers.about(s, ana, ["one", "two", "three"]))
    assert {name: row.source for name, row in found.items()} == {"one": "m at h"}
