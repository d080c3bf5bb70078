"""engine.prompts.hindsight: the notes and the feedback that only the teacher sees."""

import copy

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.prompts.hindsight import (
    WORDINGS,
    ChatMessage,
    Hindsight,
    notes_block,
    plain_messages,
    solution_note,
    teacher_messages,
    with_facts,
    with_hindsight,
    with_notes,
)

CHAT: list[ChatMessage] = [
    {"role": "system", "content": "You are kind."},
    {"role": "user", "content": "hi"},
    {"role": "assistant", "content": "Hello."},
    {"role": "user", "content": "what is a koala?"},
]
texts = st.text(min_size=1, max_size=40)
chats = st.lists(st.tuples(texts, texts), max_size=3).map(
    lambda pairs: [
        *(
            {"role": role, "content": text}
            for pair in pairs
            for role, text in zip(("user", "assistant"), pair, strict=True)
        ),
        {"role": "user", "content": "?"},
    ]
)


@given(chats)
def test_without_notes_and_feedback_the_teacher_sees_what_the_student_sees(chat: list[ChatMessage]) -> None:
    """A teacher that knows nothing more gets the student's conversation, word for word."""
    assert teacher_messages(chat, [], Hindsight()) == chat


@given(chats, st.lists(texts, max_size=16), texts)
def test_nothing_that_was_handed_in_is_changed(chat: list[ChatMessage], notes: list[str], feedback: str) -> None:
    """Building the teacher's conversation leaves the student's as it was."""
    before = copy.deepcopy(chat)
    teacher_messages(chat, notes, Hindsight(feedback))
    assert chat == before


def test_notes_join_the_system_message() -> None:
    """Notes stand at the end of a system message, oldest first."""
    noted = with_notes(CHAT, ["be brief", "no emoji"])
    assert noted[0]["content"].startswith("You are kind.\n\n")
    assert noted[0]["content"].endswith("\n- be brief\n- no emoji")
    assert noted[1:] == CHAT[1:]


def test_notes_make_a_system_message_where_there_is_none() -> None:
    """A conversation without one gets one, in front."""
    noted = with_notes(CHAT[1:], ["be brief"])
    assert [m["role"] for m in noted] == ["system", "user", "assistant", "user"]
    assert "- be brief" in noted[0]["content"]


@given(chats)
def test_facts_stand_before_the_last_question(chat: list[ChatMessage]) -> None:
    """In a paragraph of their own; without facts or a question all stays as it is."""
    found = with_facts(chat, ["My dog is\ncalled Rex.", "I like blue."])
    *before, last = [message for message in found if message["role"] == "user"]
    asked = [message for message in chat if message["role"] == "user"]
    assert before == asked[:-1]
    assert last["content"] == f"My dog is called Rex.\nI like blue.\n\n{asked[-1]['content']}"
    assert with_facts(chat, []) == chat
    assert with_facts(chat, [], ["be brief"]) == with_notes(chat, ["be brief"])
    first, *_ = with_facts([{"role": "user", "content": "q"}], ["a fact"], ["be brief", "be kind"])
    assert first["content"] == "Instructions:\nbe brief\nbe kind\n\na fact\n\nq"
    assert with_facts([{"role": "system", "content": "x"}], ["y"]) == [{"role": "system", "content": "x"}]


@given(st.lists(texts, min_size=1, max_size=16))
def test_every_note_is_one_line(notes: list[str]) -> None:
    """A note with line breaks cannot pretend to be two notes or a new section."""
    assert len(notes_block(notes).split("\n")) == 1 + len(notes)


def test_hindsight_joins_the_last_user_message() -> None:
    """The feedback stands behind the question it is about; earlier turns stay."""
    marked = with_hindsight(CHAT, Hindsight("too long"))
    assert marked[:-1] == CHAT[:-1]
    assert marked[-1]["content"].startswith("what is a koala?\n\n[")
    assert "too long" in marked[-1]["content"]


def test_hindsight_needs_a_question() -> None:
    """A conversation without a question cannot carry feedback."""
    with pytest.raises(ValueError, match="without a user message"):
        with_hindsight([CHAT[0]], Hindsight("too long"))


@pytest.mark.parametrize("wording", WORDINGS)
def test_every_wording_carries_the_feedback_and_the_solution(wording: str) -> None:
    """Each published wording shows both, in words of its own."""
    block = Hindsight("too long", "A koala is a bear.", wording).block()
    assert "too long" in block
    assert "A koala is a bear." in block
    others = {Hindsight("too long", wording=w).block() for w in WORDINGS}
    assert len(others) == len(WORDINGS)


def test_the_published_wordings_are_as_published() -> None:
    """SDPO's and the chat papers' sentences stand as their papers have them."""
    assert Hindsight("F", wording="sdpo").block() == (
        "The following is feedback from your unsuccessful earlier attempt:\nF\nCorrectly solve the original question."
    )
    assert Hindsight("F", wording="claas").block() == (
        "## Hindsight context\nThe following is a future user message. Use it to guide your answer:\nF"
    )


def test_feedback_with_braces_stays_as_it_is() -> None:
    """People's text is filled in and never read as a template."""
    assert "{solution} {0}" in Hindsight("{solution} {0}").block()
    assert "{feedback}" in Hindsight("short", "{feedback}").block()


def test_a_rewritten_answer_makes_a_note_that_shows_it() -> None:
    """The note of an ideal quotes the answer."""
    assert solution_note("Sure.") == "Write like this: Sure."


def test_a_plain_conversation_has_a_note_that_asks_for_nothing() -> None:
    """In the frame of every other note: what the frame alone moves is the same with both."""
    asked = [{"role": "user", "content": "what is a koala?"}]
    (system, question) = plain_messages(asked)
    (noted, _) = with_notes(asked, ["no emoji"])
    assert question == asked[0]
    assert system["content"].replace("Answer the question.", "no emoji") == noted["content"]
