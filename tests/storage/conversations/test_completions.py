"""Answers and the messages that show them."""

import pytest

from storage.conversations import chats, completions, message_roles
from storage.errors import ChatNotFound, CompletionNotFound, ConstraintViolated
from storage.learning import better_answers, feedback
from storage.tables import Completion, MessageRole, PlatformMessage
from tests.storage import rows
from tests.storage.conftest import Store


def _answer(store: Store, user_id: str, text: str = "a llama") -> Completion:
    return store.write(lambda s: completions.add(s, rows.completion(user_id, text)))


def _link(store: Store, completion_id: str, message_id: str = "1") -> None:
    message = PlatformMessage(
        platform="telegram", chat_external_id="c", message_id=message_id, completion_id=completion_id
    )
    store.write(lambda s: completions.link(s, message))


def test_adding_brings_back_the_stored_row_and_spares_the_given_one(store: Store, ana: str) -> None:
    """The stored row has a seq; the caller's own has none, so that it can be added again after a failure."""
    given = rows.completion(ana)
    stored = store.write(lambda s: completions.add(s, given))
    assert stored.seq is not None
    assert given.seq is None
    assert stored.id == given.id


def test_another_persons_answer_does_not_exist(store: Store, ana: str, ben: str) -> None:
    """For another person an answer's id means as little as a made-up one, in every call that takes it."""
    answer = _answer(store, ana)
    assert store.read(lambda s: completions.get(s, ana, answer.id)).text == "a llama"
    for user_id, wanted in ((ben, answer.id), (ana, "cmpl-nothing")):
        with pytest.raises(CompletionNotFound, match=wanted):
            store.read(lambda s, user_id=user_id, wanted=wanted: completions.get(s, user_id, wanted))
    with pytest.raises(CompletionNotFound):
        store.write(lambda s: completions.mark_gold(s, ben, answer.id))
    with pytest.raises(CompletionNotFound):
        store.write(lambda s: completions.add(s, rows.completion(ben, retry_of=answer.id)))


def test_an_answer_cannot_enter_another_persons_chat(store: Store, ana: str, ben: str) -> None:
    """The chat of an answer is its person's own."""
    chat = store.write(lambda s: chats.resolve(s, ben, "http", "web"))
    with pytest.raises(ChatNotFound):
        store.write(lambda s: completions.add(s, rows.completion(ana, chat_id=chat.id)))


def test_an_id_is_used_once(store: Store, ana: str) -> None:
    """A second answer under the same id is refused."""
    answer = _answer(store, ana)
    with pytest.raises(ConstraintViolated, match=r"completion[._]id"):
        store.write(lambda s: completions.add(s, rows.completion(ana, id=answer.id)))


def test_recent_answers_come_newest_first_and_are_the_persons_own(store: Store, ana: str, ben: str) -> None:
    """The limit counts this person's answers only."""
    for n in range(4):
        _answer(store, ana, str(n))
        _answer(store, ben, "ben's")
    assert [answer.text for answer in store.read(lambda s: completions.recent(s, ana, 3))] == ["3", "2", "1"]


def test_a_message_leads_to_its_answer_after_a_restart(store: Store, ana: str) -> None:
    """Feedback on a message finds the answer by platform, chat and message id, never by text."""
    answer = _answer(store, ana)
    _link(store, answer.id)
    store.reopen()
    found = store.read(lambda s: completions.by_message(s, "telegram", "c", "1", user_id=ana))
    assert found.id == answer.id


def test_a_message_shows_nothing_to_others(store: Store, ana: str, ben: str) -> None:
    """A message of another person's answer, and an unknown message, are CompletionNotFound."""
    _link(store, _answer(store, ana).id)
    for user_id, message_id in ((ben, "1"), (ana, "2")):
        with pytest.raises(CompletionNotFound):
            store.read(
                lambda s, user_id=user_id, message_id=message_id: completions.by_message(
                    s, "telegram", "c", message_id, user_id=user_id
                )
            )


def test_a_message_edited_to_show_a_retry_leads_to_the_retry(store: Store, ana: str) -> None:
    """Linking a message again moves it."""
    first, second = _answer(store, ana, "first"), _answer(store, ana, "second")
    _link(store, first.id)
    _link(store, second.id)
    found = store.read(lambda s: completions.by_message(s, "telegram", "c", "1", user_id=ana))
    assert found.text == "second"


def test_gold_can_be_given_and_taken_back(store: Store, ana: str) -> None:
    """An approval marks the answer, its withdrawal unmarks it."""
    answer = _answer(store, ana)
    assert store.write(lambda s: completions.mark_gold(s, ana, answer.id)).is_gold is True
    assert store.write(lambda s: completions.mark_gold(s, ana, answer.id, is_gold=False)).is_gold is False


def test_the_first_answers_of_a_version_come_in_order(store: Store, ana: str, ben: str) -> None:
    """Only those that this version gave this person, the oldest ones."""
    for number in (1, 2, 2, 1, 2):
        store.write(lambda s, n=number: completions.add(s, rows.completion(ana, adapter_version=n)))
    store.write(lambda s: completions.add(s, rows.completion(ben, adapter_version=2)))
    everything = store.read(lambda s: completions.recent(s, ana, 9))
    wanted = [c.id for c in reversed(everything) if c.adapter_version == 2][:2]
    assert store.read(lambda s: completions.first_of_version(s, ana, 2, 2)) == wanted


OLD_S, DAY = 1000.0, 500.0
LIMIT = 100


def _old(store: Store, user_id: str, text: str, **fields: object) -> str:
    row = rows.completion(user_id, text, **{"created_at": DAY, **fields})
    return store.write(lambda s: completions.add(s, row)).id


def _left(store: Store, user_id: str) -> set[str]:
    return {row.text for row in store.read(lambda s: completions.recent(s, user_id, LIMIT))}


def test_old_answers_that_nothing_rests_on_are_dropped(store: Store, ana: str) -> None:
    """Those with feedback, approval or a better answer stay, and so does everything that is not old."""
    said, liked, bettered = (_old(store, ana, text) for text in ("said", "liked", "bettered"))
    _old(store, ana, "plain")
    _old(store, ana, "young", created_at=OLD_S + 1)
    store.write(lambda s: feedback.add(s, rows.feedback(ana, completion_id=said)))
    store.write(lambda s: completions.mark_gold(s, ana, liked))
    store.write(lambda s: better_answers.add(s, rows.better_answer(ana, bettered)))
    assert store.write(lambda s: completions.drop_unneeded(s, OLD_S, LIMIT)) == 1
    assert _left(store, ana) == {"said", "liked", "bettered", "young"}
    assert store.write(lambda s: completions.drop_unneeded(s, OLD_S, LIMIT)) == 0


def test_what_showed_a_dropped_answer_goes_with_it(store: Store, ana: str) -> None:
    """The message that showed it, and a question about it."""
    answer = _old(store, ana, "plain")
    _link(store, answer)
    role = MessageRole(
        platform="telegram", chat_external_id="c", message_id="2", user_id=ana, role="reason", about=answer
    )
    store.write(lambda s: message_roles.put(s, role))
    store.write(lambda s: completions.drop_unneeded(s, OLD_S, LIMIT))
    with pytest.raises(CompletionNotFound):
        store.read(lambda s: completions.by_message(s, "telegram", "c", "1", user_id=ana))
    assert store.read(lambda s: message_roles.find(s, ana, "telegram", "c", "2")) is None


def test_answers_to_one_message_go_last_first(store: Store, ana: str) -> None:
    """So that none is left that answers again what is not there; a conversation can be read at every moment."""
    chat = store.write(lambda s: chats.resolve(s, ana, "http", "web")).id
    first = _old(store, ana, "first", chat_id=chat)
    second = _old(store, ana, "second", chat_id=chat, retry_of=first)
    _old(store, ana, "third", chat_id=chat, retry_of=second)
    left = []
    while store.write(lambda s: completions.drop_unneeded(s, OLD_S, LIMIT)):
        left.append(_left(store, ana))
        store.read(lambda s: chats.context(s, ana, "http", "web", LIMIT))
    assert left == [{"first", "second"}, {"first"}, set()]


def test_an_answer_given_again_stays_with_the_one_that_was_corrected(store: Store, ana: str) -> None:
    """Without it the conversation would go on from the answer that was not good."""
    chat = store.write(lambda s: chats.resolve(s, ana, "http", "web")).id
    corrected = _old(store, ana, "corrected", chat_id=chat)
    _old(store, ana, "again", chat_id=chat, retry_of=corrected)
    store.write(lambda s: feedback.add(s, rows.feedback(ana, completion_id=corrected)))
    assert store.write(lambda s: completions.drop_unneeded(s, OLD_S, LIMIT)) == 0


def test_few_go_at_a_time_and_the_oldest_first(store: Store, ana: str) -> None:
    """As many as are asked for."""
    for number in range(5):
        _old(store, ana, str(number))
    assert store.write(lambda s: completions.drop_unneeded(s, OLD_S, 2)) == 2
    assert _left(store, ana) == {"2", "3", "4"}


def test_an_answer_is_found_by_its_text_and_its_question(store: Store, ana: str, ben: str) -> None:
    """The newest of the same; neither another question's nor another person's."""
    for _ in range(2):
        newest = _answer(store, ana)
    other = [{"role": "user", "content": "What is it?"}, {"role": "user", "content": "And that?"}]
    store.write(lambda s: completions.add(s, rows.completion(ana, messages=other)))
    store.write(lambda s: completions.add(s, rows.completion(ana, messages=[])))
    found = store.read(lambda s: completions.by_text(s, ana, "What is it?", "a llama"))
    assert found is not None
    assert found.id == newest.id
    for user_id, question, text in (
        (ana, "what is it?", "a llama"),
        (ana, "What is it?", "A llama"),
        (ben, "What is it?", "a llama"),
    ):
        assert store.read(lambda s, a=(user_id, question, text): completions.by_text(s, *a)) is None
