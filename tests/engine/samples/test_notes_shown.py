"""engine.samples.notes: which notes a conversation is shown."""

import pytest

from engine.config import NoteConfig
from engine.samples.notes import concerns, emphasised, shown
from storage.kinds import NoteState
from storage.tables import Note

TOLD = ("my dog is called Rex", "my cat is called Tom", "my boss is called Ana", "i like blue", "ich wohne in Köln")


def noted(*texts: str, state: NoteState = NoteState.WHEN_ASKED) -> list[Note]:
    """Return notes that wait for a question."""
    return [Note(id=text, user_id="u", text=text, state=state) for text in texts]


def asked(*texts: str) -> list[dict[str, str]]:
    """Return a conversation of a person who says these, one after the other."""
    return [
        turn for text in texts for turn in ({"role": "user", "content": text}, {"role": "assistant", "content": "."})
    ]


@pytest.mark.parametrize(
    ("question", "texts"),
    [
        ("What is my DOG called?", ["my dog is called Rex"]),
        ("what colour do i like?", ["i like blue"]),
        ("Wo wohne ich?", ["ich wohne in Köln"]),
        ("what is my hamster called?", []),  # nearly every note has the word
        ("7 plus 8?", []),
    ],
)
def test_a_fact_is_shown_beside_questions_that_share_a_word(question: str, texts: list[str]) -> None:
    """One that hardly another note has; capitals do not count."""
    live = noted(*TOLD)
    assert [note.text for note in shown(live, live, asked(question))] == texts


def test_what_does_not_wait_is_always_shown() -> None:
    """Wishes, facts that stay in view, and notes that are being learned."""
    live = [*noted("be brief", state=NoteState.IN_PROMPT), *noted("i like blue", state=NoteState.LEARNING)]
    assert shown(live, live, asked("7 plus 8?")) == live


def test_a_follow_up_still_concerns_the_question_before() -> None:
    """The two newest turns of the person are read, and no older one."""
    live = noted(*TOLD)
    assert concerns(live[0], live, asked("my dog is ill", "what was he called?"))
    assert not concerns(live[0], live, asked("my dog is ill", "oh", "what is 7 plus 8?"))


def test_scripts_without_blanks_are_read_letter_by_letter() -> None:
    """A Chinese note shares no word with a question, but letters."""
    live = noted("我的狗叫旺财", "我的猫叫咪咪", "我的鱼叫泡泡")
    assert [note.text for note in shown(live, live, asked("狗的名字是什么?"))] == ["我的狗叫旺财"]


def test_a_note_without_words_of_its_own_is_shown_by_any_of_them() -> None:
    """What was told three times still answers."""
    live = noted("my dog is ill", "my dog is old", "my dog is big")
    same = [live[0], *noted("my dog is ill", "my dog is ill")]
    assert concerns(live[0], same, asked("is my dog well?"))


def test_a_word_of_every_other_question_concerns_nothing() -> None:
    """ "The" is in both, and asks for no neighbour; with nothing else in a note it is all there is."""
    live = noted("my neighbour is playing the drums again")
    assert not concerns(live[0], live, asked("Why is the sea salty?"))
    assert concerns(live[0], live, asked("How loud are drums?"))
    assert concerns(noted("what about the")[0], noted("what about the"), asked("What is the time?"))


def test_a_fact_that_is_called_up_is_said_once_more_behind_all_notes() -> None:
    """A wish is not: two of the same would be two wishes."""
    fact, other = noted("i like blue", "my dog is called Rex")
    (wish,) = noted("be brief", state=NoteState.IN_PROMPT)
    said = emphasised([fact, wish, other], NoteConfig(), 1024)
    assert said == ["i like blue", "be brief", "my dog is called Rex", "i like blue", "my dog is called Rex"]
    assert emphasised([wish], NoteConfig(), 1024) == ["be brief"]


def test_no_note_gives_way_to_one_that_is_said_again() -> None:
    """Neither by its tokens nor by the number of notes."""
    (wish,), (fact,) = noted("be brief", state=NoteState.IN_PROMPT), noted("i like blue")
    config = NoteConfig(max_notes=2)
    assert emphasised([wish, fact], config, 1024) == ["be brief", "i like blue"]
    wish.num_tokens = fact.num_tokens = 40
    narrow = NoteConfig(prompt_share=0.1)
    assert emphasised([wish, fact], narrow, 1000) == ["be brief", "i like blue"]
    assert emphasised([wish, fact], narrow, 1200) == ["be brief", "i like blue", "i like blue"]
