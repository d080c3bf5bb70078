"""engine.generation.told: where a prompt says what its person told."""

from pathlib import Path

import pytest

from engine.config import EngineConfig, LearnConfig
from engine.generation.told import Told, told
from engine.requests import GenerateRequest
from storage.kinds import NoteState
from storage.tables import Note

COLOUR, FOOD, DOG = "My favourite colour is blue.", "My favourite food is lasagne.", "My dog is called Rex."
WISH = Note(id="wish", user_id="ana", text="answer in one sentence", state=NoteState.IN_PROMPT, num_tokens=8)


def fact(text: str, state: NoteState = NoteState.WHEN_ASKED) -> Note:
    """A note of about this many tokens."""
    return Note(id=text, user_id="ana", text=text, state=state, num_tokens=8)


def asked(question: str, notes: list[Note], *, is_small: bool = True, remark: str = "") -> Told:
    """What stands in the prompt of a question, with all notes shown."""
    config = EngineConfig("pocket", Path("data"), learn=LearnConfig(facts_in_message=is_small))
    request = GenerateRequest("ana", [{"role": "user", "content": question}], remark=remark)
    return told(request, notes, notes, config, 1024)


def test_a_small_model_reads_a_fact_right_before_its_question() -> None:
    """Wishes and the remark about one answer stand before it; the answer is recorded with all of them."""
    found = asked("What is my dog called?", [WISH, fact(DOG)], remark="no emoji")
    (user,) = found.messages
    assert user["content"] == (f"Instructions:\nanswer in one sentence\nno emoji\n\n{DOG}\n\nWhat is my dog called?")
    assert found.notes == ["answer in one sentence", "no emoji", DOG]


def test_a_wide_model_reads_it_among_the_notes() -> None:
    """Twice, as the pocket model does."""
    found = asked("What is my dog called?", [WISH, fact(DOG)], is_small=False, remark="no emoji")
    system, user = found.messages
    assert system["content"].count(DOG) == 2
    assert user["content"] == "What is my dog called?"
    assert found.notes == ["answer in one sentence", DOG, "no emoji"]


@pytest.mark.parametrize(
    ("question", "before"),
    [
        ("What is my favourite colour?", [COLOUR]),  # the food shares one word of these two
        ("What are my favourite things?", [COLOUR, FOOD]),
        ("What colour is my favourite dog?", [DOG, COLOUR]),  # the closest stands nearest
        ("Why is the sea salty?", []),
    ],
)
def test_the_closest_facts_stand_nearest(question: str, before: list[str]) -> None:
    """None without a word that the question shares."""
    (user,) = asked(question, [fact(COLOUR), fact(FOOD), fact(DOG)]).messages
    assert user["content"] == "\n".join([*before, "", question] if before else [question])


def test_without_a_fact_that_is_called_up_wishes_stand_where_they_do() -> None:
    """A note that does not wait is no fact, whatever words the question shares with it."""
    system, user = asked("What is a sentence?", [WISH]).messages
    assert "answer in one sentence" in system["content"]
    assert user["content"] == "What is a sentence?"
