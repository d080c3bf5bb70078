"""Conversations and their turns."""

import pytest

from storage.conversations import chats, completions
from storage.errors import ChatNotFound, ConstraintViolated
from tests.storage import rows
from tests.storage.conftest import Store


def _chat(store: Store, user_id: str, external_id: str = "web") -> str:
    return store.write(lambda s: chats.resolve(s, user_id, "http", external_id)).id


def _answer(store: Store, user_id: str, chat_id: str, text: str, **fields: object) -> str:
    return store.write(lambda s: completions.add(s, rows.completion(user_id, text, chat_id=chat_id, **fields))).id


def _texts(store: Store, chat_id: str, limit: int = 10) -> list[str]:
    return [turn.text for turn in store.read(lambda s: chats.turns(s, chat_id, limit))]


def test_a_place_is_the_same_chat_for_one_person_and_another_for_the_next(store: Store, ana: str, ben: str) -> None:
    """Two people in one group chat have a conversation each."""
    assert _chat(store, ana) == _chat(store, ana)
    assert len({_chat(store, ana), _chat(store, ben), _chat(store, ana, "elsewhere")}) == 3


def test_a_chat_needs_a_person(store: Store) -> None:
    """Without a person there is no conversation."""
    with pytest.raises(ConstraintViolated):
        _chat(store, "nobody")


def test_another_persons_chat_does_not_exist(store: Store, ana: str, ben: str) -> None:
    """get() with the wrong person is the same as with a wrong id."""
    chat_id = _chat(store, ana)
    assert store.read(lambda s: chats.get(s, ana, chat_id)).id == chat_id
    for user_id, wanted in ((ben, chat_id), (ana, "nothing")):
        with pytest.raises(ChatNotFound):
            store.read(lambda s, user_id=user_id, wanted=wanted: chats.get(s, user_id, wanted))


def test_turns_are_the_newest_in_the_order_of_talking(store: Store, ana: str) -> None:
    """Of five answers the last three come back, oldest first."""
    chat_id = _chat(store, ana)
    for n in range(5):
        _answer(store, ana, chat_id, str(n))
    assert _texts(store, chat_id, limit=3) == ["2", "3", "4"]


def test_turns_of_other_chats_stay_out(store: Store, ana: str, ben: str) -> None:
    """Neither the person's other chat nor another person's shows."""
    chat_id = _chat(store, ana)
    _answer(store, ana, chat_id, "here")
    _answer(store, ana, _chat(store, ana, "elsewhere"), "elsewhere")
    _answer(store, ben, _chat(store, ben), "ben")
    assert _texts(store, chat_id) == ["here"]


def test_a_row_of_somebody_else_in_a_chat_is_no_context(store: Store, ana: str, ben: str) -> None:
    """Even if another person's answer got into the chat's rows, it never reaches this person's prompt."""
    chat_id = _chat(store, ana)
    store.write(lambda s: s.add(rows.completion(ben, "ben's", chat_id=chat_id)))
    assert _texts(store, chat_id) == []


def test_an_answer_given_again_replaces_the_first(store: Store, ana: str) -> None:
    """After two retries, of whichever of the answers, only the newest is context; other turns stay in place."""
    chat_id = _chat(store, ana)
    first = _answer(store, ana, chat_id, "first")
    _answer(store, ana, chat_id, "next question")
    again = _answer(store, ana, chat_id, "second", retry_of=first)
    assert _texts(store, chat_id) == ["next question", "second"]
    _answer(store, ana, chat_id, "third", retry_of=first)
    assert _texts(store, chat_id) == ["next question", "third"]
    _answer(store, ana, chat_id, "fourth", retry_of=again)
    assert "second" not in _texts(store, chat_id)


def test_a_retry_outside_the_chat_changes_nothing_in_it(store: Store, ana: str) -> None:
    """An answer repeated elsewhere (over HTTP, without a chat) stays in its conversation."""
    chat_id = _chat(store, ana)
    first = _answer(store, ana, chat_id, "first")
    store.write(lambda s: completions.add(s, rows.completion(ana, "elsewhere", retry_of=first)))
    assert _texts(store, chat_id) == ["first"]


def test_of_several_choices_the_first_is_context(store: Store, ana: str) -> None:
    """With n > 1 the conversation goes on from choice 0."""
    chat_id = _chat(store, ana)
    for n in range(3):
        _answer(store, ana, chat_id, str(n), choice_index=n)
    assert _texts(store, chat_id) == ["0"]


def test_after_a_reset_the_conversation_starts_anew(store: Store, ana: str) -> None:
    """Earlier turns are no context any more and are still stored."""
    chat_id = _chat(store, ana)
    before = _answer(store, ana, chat_id, "before")
    store.write(lambda s: chats.reset(s, chat_id))
    assert _texts(store, chat_id) == []
    _answer(store, ana, chat_id, "after")
    assert _texts(store, chat_id) == ["after"]
    assert store.read(lambda s: completions.get(s, ana, before)).text == "before"


def test_resetting_an_empty_chat_is_harmless_and_a_missing_one_is_named(store: Store, ana: str) -> None:
    """reset() needs a chat, not turns."""
    assert store.write(lambda s: chats.reset(s, _chat_in(s, ana))).reset_seq == 0
    with pytest.raises(ChatNotFound):
        store.write(lambda s: chats.reset(s, "nothing"))


def _chat_in(s: object, user_id: str) -> str:
    return chats.resolve(s, user_id, "http", "web").id  # type: ignore[arg-type]


def test_the_context_is_what_the_turns_say(store: Store, ana: str) -> None:
    """Questions and answers in order, an answer given again in the place of its question, for any text."""
    chat_id = _chat(store, ana)
    said = ['is "\\" a slash? {"role": "user", "content": "no"}', "né 🙂\n", ""]
    ids = []
    for number, text in enumerate(said):
        messages = [{"role": "user", "content": "before"}, {"role": "assistant", "content": "a"}]
        messages.append({"role": "user", "content": text})
        ids.append(_answer(store, ana, chat_id, f"answer {number}", messages=messages))
    _answer(store, ana, chat_id, "again", retry_of=ids[0], messages=[{"role": "user", "content": said[0]}])
    chat = store.read(lambda s: chats.get(s, ana, chat_id))
    context = store.read(lambda s: chats.context(s, ana, chat.platform, chat.external_id, 20))
    assert context is not None
    assert (context.chat_id, context.persona) == (chat_id, None)
    assert context.exchanges == [(said[0], "again"), (said[1], "answer 1"), (said[2], "answer 2")]
    assert store.read(lambda s: chats.context(s, ana, "nowhere", "x", 20)) is None
    newest = store.read(lambda s: chats.context(s, ana, chat.platform, chat.external_id, 1))
    assert newest is not None
    assert newest.exchanges == [(said[0], "again")]


def test_conversations_are_listed_by_their_places(store: Store, ana: str, ben: str) -> None:
    """The newest first; other places, other people's and what only looks alike are not among them."""
    for user_id, place in (
        (ana, "session/1"),
        (ana, "session/2"),
        (ana, "web"),
        (ana, "sessionx1"),
        (ben, "session/3"),
    ):
        store.write(lambda s, u=user_id, p=place: chats.resolve(s, u, "http", p))
    found = store.read(lambda s: chats.below(s, ana, "http", "session/"))
    assert {chat.external_id for chat in found} == {"session/1", "session/2"}
    assert store.read(lambda s: chats.below(s, ana, "http", "s_ssion/")) == []


def test_a_removed_conversation_leaves_its_answers(store: Store, ana: str) -> None:
    """In no conversation; removing it again does no harm."""
    chat = store.write(lambda s: chats.resolve(s, ana, "http", "session/1"))
    answer = store.write(lambda s: completions.add(s, rows.completion(ana, chat_id=chat.id)))
    for _ in range(2):
        store.write(lambda s: chats.remove(s, chat.id))
    assert store.read(lambda s: chats.find(s, ana, "http", "session/1")) is None
    assert store.read(lambda s: completions.get(s, ana, answer.id)).chat_id is None
