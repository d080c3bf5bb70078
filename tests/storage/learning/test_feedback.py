"""Feedback: once each, in order, through its states."""

import pytest

from storage.conversations import completions
from storage.errors import CompletionNotFound, FeedbackNotFound, IdempotencyConflict
from storage.kinds import FeedbackStatus, Meaning, Scope
from storage.learning import feedback
from storage.tables import Feedback
from tests.storage import rows
from tests.storage.conftest import Store


def _give(store: Store, user_id: str, **fields: object) -> Feedback:
    return store.write(lambda s: feedback.add(s, rows.feedback(user_id, **fields)))[0]


def _texts(items: list[Feedback]) -> list[str]:
    return [item.text for item in items]


def test_the_same_delivery_is_stored_once(store: Store, ana: str) -> None:
    """A repeated key with the same content brings back the first row, also after a restart."""
    given = rows.feedback(ana, idempotency_key="k")
    first, is_new = store.write(lambda s: feedback.add(s, given))
    assert is_new
    store.reopen()
    again, is_new = store.write(lambda s: feedback.add(s, rows.feedback(ana, idempotency_key="k")))
    assert (again.id, is_new) == (first.id, False)
    assert given.seq is None, "the given row is not touched"


@pytest.mark.parametrize("other", [{"text": "too short"}, {"kind": "note"}, {"value": "+1"}, {"training": {"lr": 1.0}}])
def test_a_key_used_for_other_content_is_refused(store: Store, ana: str, other: dict[str, object]) -> None:
    """A key names one content; the first stands."""
    first = _give(store, ana, idempotency_key="k")
    with pytest.raises(IdempotencyConflict, match="new key"):
        _give(store, ana, idempotency_key="k", **other)
    assert store.read(lambda s: feedback.get(s, first.id)).text == "too long"


def test_feedback_of_another_person_is_not_found(store: Store, ana: str, ben: str) -> None:
    """By its id only its own person finds it."""
    given = _give(store, ana)
    assert store.read(lambda s: feedback.of_person(s, ana, given.id)).id == given.id
    with pytest.raises(FeedbackNotFound):
        store.read(lambda s: feedback.of_person(s, ben, given.id))


def test_two_people_may_use_the_same_key(store: Store, ana: str, ben: str) -> None:
    """A key is one person's: no one learns of, or blocks, another's."""
    one, other = _give(store, ana, idempotency_key="k"), _give(store, ben, idempotency_key="k", text="other")
    assert (one.user_id, other.user_id) == (ana, ben)


def test_feedback_on_another_persons_answer_is_refused(store: Store, ana: str, ben: str) -> None:
    """Only the asker's feedback on answers given to the asker is taken; nothing is stored otherwise."""
    answer = store.write(lambda s: completions.add(s, rows.completion(ana)))
    with pytest.raises(CompletionNotFound):
        _give(store, ben, completion_id=answer.id)
    assert store.read(feedback.pending) == []
    assert _give(store, ana, completion_id=answer.id).completion_id == answer.id


def test_pending_is_what_waits_in_the_order_of_arrival(store: Store, ana: str, ben: str) -> None:
    """Of everybody for the scheduler, of one person for their own update."""
    for user_id, text in ((ana, "1"), (ben, "2"), (ana, "3")):
        _give(store, user_id, text=text)
    assert _texts(store.read(feedback.pending)) == ["1", "2", "3"]
    assert _texts(store.read(lambda s: feedback.pending(s, ana))) == ["1", "3"]


@pytest.mark.parametrize("status", [status for status in FeedbackStatus if status != FeedbackStatus.PENDING])
def test_what_is_not_pending_does_not_wait(store: Store, ana: str, status: FeedbackStatus) -> None:
    """Every other status takes feedback out of the queue, with its reason."""
    item = _give(store, ana)
    store.write(lambda s: feedback.set_status(s, item.id, status, "because"))
    assert store.read(feedback.pending) == []
    stored = store.read(lambda s: feedback.get(s, item.id))
    assert (stored.status, stored.reason) == (status, "because")


def test_history_is_the_persons_newest_first(store: Store, ana: str, ben: str) -> None:
    """The limit counts this person's feedback only."""
    for n in range(3):
        _give(store, ana, text=str(n))
        _give(store, ben, text="ben's")
    assert _texts(store.read(lambda s: feedback.history(s, ana, 2))) == ["2", "1"]


def test_what_was_training_at_a_crash_waits_again(store: Store, ana: str) -> None:
    """After a restart an interrupted update's feedback is pending, its attempt counted, the order kept."""
    first, second = _give(store, ana, text="first"), _give(store, ana, text="second")
    assert store.write(lambda s: feedback.begin_training(s, first.id)).attempts == 1
    assert _texts(store.read(feedback.pending)) == ["second"]
    store.reopen()
    assert _texts(store.write(lambda s: feedback.requeue_interrupted(s, max_attempts=3))) == ["first"]
    assert _texts(store.read(feedback.pending)) == ["first", "second"]
    assert second.attempts == 0


def test_what_crashes_every_time_is_given_up(store: Store, ana: str) -> None:
    """At the third interrupted attempt feedback has failed, and says why."""
    item = _give(store, ana)
    for _ in range(3):
        assert store.read(feedback.pending)
        store.write(lambda s: feedback.begin_training(s, item.id))
        store.write(lambda s: feedback.requeue_interrupted(s, max_attempts=3))
    stored = store.read(lambda s: feedback.get(s, item.id))
    assert (stored.status, stored.reason) == (FeedbackStatus.FAILED, "interrupted 3 times")


def test_requeueing_leaves_the_rest_alone(store: Store, ana: str) -> None:
    """Only what was training is touched."""
    item = _give(store, ana)
    store.write(lambda s: feedback.set_status(s, item.id, FeedbackStatus.REJECTED, "gate"))
    assert store.write(lambda s: feedback.requeue_interrupted(s, max_attempts=3)) == []
    assert store.read(lambda s: feedback.get(s, item.id)).reason == "gate"


def test_people_wait_whose_feedback_has_not_ended(store: Store, ana: str, ben: str) -> None:
    """Each once, whether it waits or was being learned; what a person took back or learned calls for no one."""
    begun, _waiting, ended = _give(store, ana), _give(store, ana), _give(store, ben)
    store.write(lambda s: feedback.begin_training(s, begun.id))
    store.write(lambda s: feedback.set_status(s, ended.id, FeedbackStatus.LEARNED))
    assert store.read(feedback.people_waiting) == [ana]


def test_one_persons_interrupted_feedback_waits_again(store: Store, ana: str, ben: str) -> None:
    """In a cluster another's may be in training just now."""
    items = [_give(store, user_id) for user_id in (ana, ben)]
    for item in items:
        store.write(lambda s: feedback.begin_training(s, item.id))  # noqa: B023
    taken = store.write(lambda s: feedback.requeue_interrupted(s, max_attempts=3, user_id=ana))
    assert [item.user_id for item in taken] == [ana]
    assert [item.user_id for item in store.read(lambda s: feedback.pending(s, ana))] == [ana]
    assert store.read(lambda s: feedback.pending(s, ben)) == []


def test_unknown_feedback_is_named(store: Store) -> None:
    """Every call by id says which id is unknown."""
    for call in (feedback.get, feedback.begin_training, lambda s, i: feedback.set_status(s, i, FeedbackStatus.KEPT)):
        with pytest.raises(FeedbackNotFound, match="fb-nothing"):
            store.write(lambda s, call=call: call(s, "fb-nothing"))


def test_feedback_is_found_by_its_key(store: Store, ana: str, ben: str) -> None:
    """Only the person who used a key finds its feedback."""
    row, _ = store.write(lambda s: feedback.add(s, rows.feedback(ana, idempotency_key="telegram:7:1")))
    found = store.read(lambda s: feedback.by_key(s, ana, "telegram:7:1"))
    assert found is not None
    assert found.id == row.id
    assert store.read(lambda s: feedback.by_key(s, ben, "telegram:7:1")) is None
    assert store.read(lambda s: feedback.by_key(s, ana, "telegram:7:2")) is None


def test_feedback_on_some_answers_comes_in_order(store: Store, ana: str, ben: str) -> None:
    """Of this person, on these answers, oldest first."""
    answers = [store.write(lambda s: completions.add(s, rows.completion(ana))).id for _ in range(3)]
    for place, text in ((0, "a"), (2, "elsewhere"), (1, "b"), (0, "c")):
        _give(store, ana, completion_id=answers[place], text=text)
    _give(store, ben, text="ben's")
    assert _texts(store.read(lambda s: feedback.about(s, ana, answers[:2]))) == ["a", "b", "c"]
    assert store.read(lambda s: feedback.about(s, ben, answers)) == []


def test_a_reading_and_the_persons_own_choice_are_kept_side_by_side(store: Store, ana: str) -> None:
    """What heed took feedback for stays as it was when the person says how far it reaches."""
    item = _give(store, ana)
    assert (item.scope, item.reading, item.reading_margin, item.is_unsure) == ("", "", None, False)
    store.write(lambda s: feedback.note_reading(s, item.id, Meaning.REMARK, 0.25, is_unsure=True))
    store.write(lambda s: feedback.set_scope(s, item.id, Scope.ALWAYS))
    stored = store.read(lambda s: feedback.get(s, item.id))
    assert (stored.scope, stored.reading) == ("always", "remark")
    assert (stored.reading_margin, stored.is_unsure) == (0.25, True)
