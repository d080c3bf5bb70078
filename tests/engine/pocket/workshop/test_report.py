"""engine.pocket.workshop.report: what is asked is held out, and only a session whose every step is right counts."""

import random
from pathlib import Path
from typing import cast

import pytest

from engine.pocket.report import Pocket
from engine.pocket.workshop import report, session, tasks
from engine.pocket.workshop.report import PLACES, share_right, steps_of
from engine.pocket.workshop.tasks import SHOWN_BY
from engine.pocket.workshop.ways import DEFAULT, NAMES, held_out_wish
from engine.pocket.workshop.work import MAY_I
from engine.prompts.hindsight import Hindsight
from engine.requests import ChatMessage

MARK = Hindsight("\0").block().partition("\0")[0]
Steps = list[tuple[list[ChatMessage], str]]


class Scripted:
    """A model that says what it is given."""

    def __init__(self, texts: list[str]) -> None:
        self._texts = texts

    def answer(self, conversations: list[list[ChatMessage]]) -> list[str]:
        """Return the texts, one for each conversation."""
        assert len(conversations) == len(self._texts)
        return self._texts


def plain_session(form: str) -> Steps:
    """The steps of a task without a wish."""
    task = tasks.drawn(form, random.Random(form), is_held_out=True)
    return steps_of(report._begun(session.system([], []), task.text), task, DEFAULT)


def test_each_step_is_asked_for_after_the_steps_before() -> None:
    """With what the tools answered, and the person's yes."""
    steps = plain_session("set")
    assert [len(messages) for messages, _ in steps] == [2, 4, 6, 8]
    task = tasks.drawn("run", random.Random(1))
    asking = steps_of(report._begun("", task.text), task, DEFAULT.with_side(("asks", True)))
    assert asking[0][1] == MAY_I
    assert asking[1][0][-1] == {"role": "user", "content": "yes"}


def test_a_session_is_right_if_every_step_is() -> None:
    """Word for word."""
    sessions = [plain_session("set"), plain_session("list")]
    said = [text for steps in sessions for _, text in steps]
    assert share_right(cast(Pocket, Scripted(said)), sessions) == 1.0
    assert share_right(cast(Pocket, Scripted([*said[:-1], "There are no files."])), sessions) == 0.5


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("way", NAMES)
def test_a_wish_stands_in_each_place_in_held_out_words(way: str, place: str) -> None:
    """And the session goes as wished."""
    rng = random.Random(way)
    task = tasks.drawn(SHOWN_BY[way][0], rng, is_held_out=True)
    wish, ways = held_out_wish((way, True), rng), DEFAULT.with_side((way, True))
    begun = PLACES[place](task, ways, wish)
    assert sum(wish in message["content"] for message in begun) == 1
    assert [text for _, text in steps_of(begun, task, ways)] != [text for _, text in steps_of(begun, task, DEFAULT)]


def test_it_prints_a_row_for_each_form_and_place(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Of the model in a folder."""
    monkeypatch.setattr(report, "Pocket", lambda _: None)
    monkeypatch.setattr(report, "share_right", lambda _pocket, sessions: len(sessions) / 2)
    assert report.main([str(Path("x")), "--count", "1"]) == 0
    rows = capsys.readouterr().out.splitlines()
    assert len(rows) == len(tasks.FORMS) + (len(PLACES) + 1) * len(NAMES)
    assert rows[0].split() == ["say", "0.500"]


@pytest.mark.parametrize("way", NAMES)
def test_a_lessons_teacher_is_asked_for_what_comes_in_place_of_the_denied_call(way: str) -> None:
    """Beside the notes of four wishes, behind the steps that the ways of before have led to."""
    for number in range(6):
        ((messages, wanted),) = report.in_a_lesson(way, number)
        assert messages[0]["content"].count("\n- ") == report.NUM_OTHERS + 1
        asked = [message["content"] for message in messages if message["role"] == "user"]
        assert MARK in asked[-1]
        assert not any(MARK in text for text in asked[:-1])
        assert wanted
        if way == "spares_tests":
            assert '"path": "tests/' not in wanted
        if way == "is_unchecked":
            assert "check.sh" not in wanted
