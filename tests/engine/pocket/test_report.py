"""engine.pocket.report: the cases are held out, and the judge knows a right answer from a wrong one."""

import random
import re
from dataclasses import replace
from pathlib import Path

import pytest

from engine.pocket import report
from engine.pocket.report import WAYS, Case
from engine.pocket.style import DIRECTIONS, PREFERENCES, Direction, render
from engine.pocket.talk import SKILLS
from engine.pocket.wishes import COMMANDS, HELD_OUT_NAMES, REMARKS

ways = pytest.mark.parametrize("way", WAYS)


def cases(way: str, seed: int = 0) -> list[Case]:
    """One case per direction."""
    rng = random.Random(seed)
    return [WAYS[way](direction, rng) for direction in DIRECTIONS]


@ways
def test_the_wanted_answer_passes(way: str) -> None:
    """For every way of telling and every direction the rendered truth holds, is exact and carries the facts."""
    for case in cases(way):
        assert report.judge(case, render(case.content, case.style)) == (True, True, True), case


@ways
def test_an_answer_on_the_other_side_fails(way: str) -> None:
    """An answer with the wished preference on its other side neither holds nor is exact."""
    for case in cases(way):
        preference, side = case.direction
        value = PREFERENCES[preference][1 - side]
        wrong = case.style.with_value(preference, case.name if value == "*" else value)
        holds, is_exact, has_facts = report.judge(case, render(case.content, wrong))
        assert (holds, is_exact, has_facts) == (False, False, True), case


def test_collateral_change_is_seen() -> None:
    """An answer that grants the wish and changes something else holds, but is not exact."""
    case = WAYS["next turn"](("length", 1), random.Random(0))
    text = render(case.content, replace(case.style, emoji="off"))
    assert report.judge(case, text) == (True, False, True)


def test_an_answer_about_something_else_lacks_the_facts() -> None:
    """The unknown's answer in the right style does not pass for an answer."""
    case = WAYS["next turn"](("emoji", 1), random.Random(0))
    assert report.judge(case, "Sure, I don't know.")[2] is False


@ways
def test_only_held_out_subjects_are_asked_about(way: str) -> None:
    """Every case asks about a subject that training never styled."""
    assert all(case.content.subject.is_held_out for case in cases(way))


@ways
def test_only_held_out_names_are_wished(way: str) -> None:
    """A wish for a name gives one that training never used."""
    for case in cases(way):
        if case.direction == ("name", 1):
            assert case.style.name in HELD_OUT_NAMES


@ways
def test_the_newest_wish_is_a_held_out_phrasing(way: str) -> None:
    """The wish that a case is judged on comes in words, or in a frame, that training never used."""
    for case in cases(way):
        assert is_told_in_held_out_words(case.messages, case.direction), case


def is_told_in_held_out_words(messages: list[dict[str, str]], direction: Direction) -> bool:
    """Return True if a message has a held-out phrasing of the direction or a held-out frame around a known one."""
    text = "\n".join(m["content"] for m in messages)
    phrases = [*COMMANDS[direction][1], *REMARKS[direction][1]]
    patterns = [re.escape(p).replace(r"\{x\}", r"\w+") for p in phrases]
    frames = ("for me, ", "i need you to ", "in your next answers ", ", would you", "kindly ")
    return any(re.search(p, text) for p in patterns) or any(frame in text for frame in frames)


@pytest.mark.parametrize(("way", "count"), [("note", 1), ("4 notes", 4), ("8 notes", 8), ("16 notes", 16)])
def test_a_case_has_the_notes_it_says(way: str, count: int) -> None:
    """The notes stand in the system prompt, up to sixteen at once (a wish back needs the one it takes back)."""
    for case in cases(way):
        written = case.messages[0]["content"].count("\n- ")
        assert written in (count, count + 1) if way == "note" else written == count


@pytest.fixture(scope="module")
def model(pocket: Path) -> report.Pocket:
    """Load the pocket model as the report uses it."""
    return report.Pocket(pocket)


def test_a_batch_answers_as_one_by_one(model: report.Pocket) -> None:
    """Padding a batch changes no answer, so the report measures the model and not the batch."""
    conversations = [c.messages for c in cases("note")[:3]] + [[{"role": "user", "content": "hi"}]]
    assert model.answer(conversations) == [model.answer([c])[0] for c in conversations]


def test_the_untrained_default_is_what_people_correct(model: report.Pocket) -> None:
    """The model itself answers a plain question long, with an emoji and with a closing question."""
    text = model.answer([[{"role": "user", "content": "Tell me about the koala"}]])[0]
    assert len(text.split()) > 15
    assert text.endswith("?")
    assert "🐾" in text


class Oracle(report.Pocket):
    """A model that answers every sum right and nothing else."""

    def __init__(self) -> None:
        """Load no model."""

    def answer(self, conversations: list[list[dict[str, str]]]) -> list[str]:
        """Return the sum of the numbers in each question."""
        asked = [c[-1]["content"] for c in conversations]
        return [str(sum(map(int, re.findall(r"\d+", a)))) if re.search(r"plus|\+|Add", a) else "?" for a in asked]


def test_skills_are_scored_by_exact_answers() -> None:
    """A model that can only add scores one in adding and nothing in the other skills."""
    assert report.skill_accuracy(Oracle(), 20, 0) == {s: float(s == "add") for s in SKILLS}
