"""The list of a person's conversations: titles, search, rename and erase."""

import pytest

from storage.conversations import chat_list, chats, completions
from storage.errors import CompletionNotFound
from storage.learning import feedback
from storage.tables import Feedback
from tests.storage import rows
from tests.storage.conftest import Store


def asked(store: Store, user_id: str, place: str, question: str, answer: str = "Yes.") -> str:
    """One turn of a conversation; the id of the answer."""
    chat = store.write(lambda s: chats.resolve(s, user_id, "http", place))
    messages = [{"role": "user", "content": question}]
    row = rows.completion(user_id, answer, chat_id=chat.id, messages=messages)
    return store.write(lambda s: completions.add(s, row)).id


def titles(store: Store, user_id: str, words: str = "") -> list[str]:
    """The titles of a person's conversations."""
    return [line.title for line in store.read(lambda s: chat_list.lines(s, user_id, "http", 50, words))]


def test_the_last_used_is_first_and_named_for_its_first_question(store: Store, ana: str, ben: str) -> None:
    """Another person's conversations, and empty ones, are in no list."""
    asked(store, ana, "a", "Tell me\n about   bees")
    asked(store, ana, "b", "x" * 200)
    asked(store, ana, "a", "And wasps?")
    asked(store, ben, "a", "Ben's")
    store.write(lambda s: chats.resolve(s, ana, "http", "empty"))
    assert titles(store, ana) == ["Tell me about bees", "x" * 79 + "…"]
    first = store.read(lambda s: chat_list.lines(s, ana, "http", 1))[0]
    assert (first.num_answers, first.chat.external_id) == (2, "a")


def test_a_conversation_is_renamed(store: Store, ana: str) -> None:
    """An empty title gives back the first question."""
    asked(store, ana, "a", "Tell me about bees")
    chat = store.read(lambda s: chats.find(s, ana, "http", "a"))
    assert chat is not None
    for given, shown in (("My bees", "My bees"), ("", "Tell me about bees")):
        store.write(lambda s, given=given: chat_list.rename(s, chat.id, given))
        assert titles(store, ana) == [shown]


@pytest.mark.parametrize(
    ("words", "found"),
    [
        ("BEES", ["Bees?"]),
        ("honig", ["Käse"]),
        ("Käse", ["Käse"]),
        ("100 %", ["100 % sure"]),
        ("100%", []),
        ('"quoted"', ["Käse"]),
        ("nothing", []),
    ],
)
def test_words_are_looked_for_in_titles_questions_and_answers(
    store: Store, ana: str, words: str, found: list[str]
) -> None:
    """In any case of letters, other letters and signs included."""
    asked(store, ana, "a", "Bees?")
    asked(store, ana, "b", "Käse", 'Honig, "quoted".')
    asked(store, ana, "c", "100 % sure")
    assert titles(store, ana, words) == found


def test_erasing_leaves_what_taught_something(store: Store, ana: str) -> None:
    """Answers with feedback stay, in no conversation; all others go, with those given again."""
    taught, plain = asked(store, ana, "a", "Bees?"), asked(store, ana, "a", "Wasps?")
    store.write(lambda s: feedback.add(s, Feedback(user_id=ana, completion_id=taught, kind="correction", text="short")))
    chat = store.read(lambda s: chats.find(s, ana, "http", "a"))
    assert chat is not None
    store.write(lambda s: chat_list.erase(s, chat.id))
    assert titles(store, ana) == []
    assert store.read(lambda s: completions.get(s, ana, taught)).chat_id is None
    with pytest.raises(CompletionNotFound):
        store.read(lambda s: completions.get(s, ana, plain))
