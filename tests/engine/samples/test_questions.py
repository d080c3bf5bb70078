"""engine.samples.questions: what is asked about a note, and which of it is kept."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.config import FactConfig
from engine.samples.questions import (
    NoteQuestion,
    chosen,
    cleaned,
    framed,
    in_use,
    left_out,
    own_words,
    request,
    taught,
    tells,
    untold,
)

CONFIG = FactConfig(num_questions=2, min_gap=0.1)
found = st.lists(
    st.builds(NoteQuestion, st.integers(0, 3), st.sampled_from("abcdef"), st.floats(0, 2)), max_size=30
)  # notes 0 to 3, questions a to f


def test_the_model_is_asked_with_the_notes_words() -> None:
    """In one message, which is neither a note nor feedback."""
    (message,) = request("my dog is called Rex")
    assert message["role"] == "user"
    assert "my dog is called Rex" in message["content"]


@pytest.mark.parametrize(
    ("answer", "question"),
    [
        ("What is your dog called?", "What is your dog called?"),
        (' "Who is Rex?"\nI hope that helps.', "Who is Rex?"),
        ("- Where do I live?", "Where do I live?"),
        ("「我的狗叫什么名字？」", "我的狗叫什么名字？"),  # noqa: RUF001
        ("ما اسم كلبي؟", "ما اسم كلبي؟"),
        ("„Wie heißt mein Hund?“", "Wie heißt mein Hund?"),
        ("«Comment s'appelle mon chien ?»", "Comment s'appelle mon chien ?"),
        ("私の犬の名前は何ですか。", "私の犬の名前は何ですか。"),
        ("私の犬はレックスです。", ""),
        ("I don't know about that yet.", ""),
        ("", ""),
        ("a" * 300 + "?", ""),
    ],
)
def test_only_a_question_is_taken_from_what_the_model_wrote(answer: str, question: str) -> None:
    """Without quotes and without what follows it; anything else is no question."""
    assert cleaned(answer) == question


def test_every_frame_takes_every_word() -> None:
    """Words of three letters and more, each question once, in whatever script."""
    assert framed("my dog is Rex. Rex!", ["who is {x}?", "where?"]) == ["who is dog?", "where?", "who is Rex?"]
    assert framed("я живу в Осло", ["{x}?"]) == ["живу?", "Осло?"]
    assert framed("42", ["{x}?"]) == []


def test_a_frame_takes_no_word_of_another_script() -> None:
    """Questions about a Chinese note are the model's own; frames in the note's script take its words."""
    assert framed("我的狗叫雷克斯", ["what is my {x}?"]) == []
    assert framed("mein Hund heißt Rex", ["wie heißt mein {x}?"])[1] == "wie heißt mein Hund?"


def test_a_word_that_several_notes_share_is_not_what_one_is_about() -> None:
    """Unless a note has no other."""
    told = ["my dog is called Rex", "my cat is called Tom", "my son is called Leo"]
    assert framed(told[0], ["{x}?"], told[1:]) == ["dog?", "Rex?"]
    assert framed(told[0], ["{x}?"], ["my dog is called Luna"]) == ["dog?", "called?", "Rex?"]
    assert framed("called", ["{x}?"], told) == ["called?"]


@pytest.mark.parametrize(
    ("question", "answer", "expected"),
    [
        ("what is my dog called?", "Your dog is called Rex.", True),
        ("who is Rex?", "Rex is your Dog.", True),
        ("what is my Rex called?", "Your Rex is called Rex.", False),
        ("tell me my Rex's name", "Your Rex is called Rex.", False),
        ("what is my dog called?", "I don't know that yet.", False),
    ],
)
def test_a_question_asks_for_something_that_its_note_tells(question: str, answer: str, expected: bool) -> None:
    """The answer has a word of the note's own that is not in the question already; capitals make no other word."""
    own = own_words("my dog is called Rex", ["my cat is called Tom", "my son is called Leo"])
    assert tells(own, question, answer) is expected


def test_every_third_question_is_left_to_the_probe() -> None:
    """With fewer than three there is none to spare."""
    assert taught(list("abcdefg")) == list("abdeg")
    assert taught(["a", "b"]) == ["a", "b"]
    assert taught([]) == []
    assert left_out(list("abcdefg")) == list("cf")
    assert left_out(["a", "b"]) == []


def test_what_was_never_told_is_asked_in_the_same_frames() -> None:
    """About things that stand in no note, the frames in turn; no question twice."""
    frames, things, notes = (
        ["what is my {x}?", "who is my {x}?"],
        ["dog", "cat", "bat", "cow"],
        ["my dog is called Rex"],
    )
    assert untold(frames, things, notes, 3) == ["what is my cat?", "who is my bat?", "what is my cow?"]
    assert len(untold(frames, things, notes, 99)) == 6
    assert untold(frames, ["dog"], notes, 3) == untold([], things, notes, 3) == untold(frames, things, notes, 0) == []


def test_frames_in_use_are_those_that_told_things_are_asked_in() -> None:
    """A frame that no kept question was made of teaches nothing; questions that the model wrote leave all frames."""
    frames = ["what is my {x}?", "who is my {x}?", "where do i {x}?"]
    kept = [("my dog is Rex", ["who is my dog?", "what is he?"]), ("i live in Oslo", ["where do i live?"])]
    assert in_use(frames, kept) == frames[1:]
    assert in_use(frames, [("my dog is Rex", ["what is he?"])]) == frames


def test_the_largest_gaps_are_kept() -> None:
    """As many as are wanted, the best first; what the note hardly moves is not."""
    asked = [
        NoteQuestion(0, "a", 0.3),
        NoteQuestion(0, "b", 0.9),
        NoteQuestion(0, "c", 0.5),
        NoteQuestion(1, "d", 0.05),
    ]
    assert chosen(asked, CONFIG) == {0: ["b", "c"]}


def test_a_question_belongs_to_the_newest_note_that_answers_it() -> None:
    """The dog was given another name: the older note has nothing left to say. Capitals make no other question."""
    asked = [NoteQuestion(0, "what is my dog called?", math.inf), NoteQuestion(1, "What is my dog called?", 0.8)]
    assert chosen(asked, CONFIG) == {1: ["What is my dog called?"]}


@given(found)
def test_no_question_has_two_answers(asked: list[NoteQuestion]) -> None:
    """Each question is kept for one note at most, and every kept question moves the answer of its note."""
    kept = chosen(asked, CONFIG)
    texts = [text for own in kept.values() for text in own]
    assert len(texts) == len(set(texts))
    assert all(1 <= len(own) <= CONFIG.num_questions for own in kept.values())
    for note, own in kept.items():
        assert all(any(q.note == note and q.text == t and q.gap >= CONFIG.min_gap for q in asked) for t in own)
