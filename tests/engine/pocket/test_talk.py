"""engine.pocket.talk: small talk, personal facts, skills and the unknown."""

import random
import re
from collections import defaultdict

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.pocket.style import Plain, Style, render
from engine.pocket.subjects import SUBJECTS
from engine.pocket.talk import (
    SKILLS,
    SMALL_TALK,
    UNKNOWN,
    WHO_ASKS,
    exercise,
    personal_fact,
    unknown_ask,
    who,
)

seeds = st.integers(0, 2**32).map(random.Random)


def solved(question: str) -> str | None:
    """Return the answer to an arithmetic or copying exercise, found from the question alone."""
    numbers = [int(n) for n in re.findall(r"\d+", question)]
    if re.search(r"plus|\+|Add", question):
        return str(sum(numbers))
    if re.search(r"bigger|larger", question):
        return str(max(numbers))
    said = re.match(r"(?:Repeat after me|Say this|Repeat): (.*)", question)
    return said[1] if said else None


@given(st.sampled_from(("add", "repeat", "bigger")), seeds)
def test_exercises_carry_the_right_answer(skill: str, rng: random.Random) -> None:
    """Sums, copies and comparisons are right."""
    asked, answer = exercise(skill, rng)
    assert isinstance(answer, Plain)
    assert answer.text == solved(asked)


@pytest.mark.parametrize("skill", SKILLS)
def test_a_question_of_a_skill_has_one_answer(skill: str) -> None:
    """No question ever comes with two different answers, so a right answer can be told from a wrong one."""
    rng = random.Random(0)
    answers = defaultdict(set)
    for _ in range(3000):
        asked, answer = exercise(skill, rng)
        assert isinstance(answer, Plain)
        answers[re.sub(r".*(?:of|after|follows) ", "", asked)].add(answer.text)
    assert all(len(found) == 1 for found in answers.values())


def test_opposites_go_both_ways() -> None:
    """The opposite of an opposite is the word itself."""
    rng = random.Random(1)
    opposite = {}
    for _ in range(3000):
        asked, answer = exercise("opposite", rng)
        assert isinstance(answer, Plain)
        opposite[asked.rstrip("?").split()[-1]] = answer.text
    assert len(opposite) >= 60
    assert all(opposite[other] == word for word, other in opposite.items())


def test_something_said_in_small_talk_means_one_thing() -> None:
    """No phrase stands in two kinds of small talk, nor among the questions about the bot itself."""
    said = [text for _, texts, _ in SMALL_TALK for text in texts]
    assert len({*said, *WHO_ASKS}) == len(said) + len(WHO_ASKS)


@given(seeds, st.sampled_from(("english", "spanish")), st.sampled_from(("casual", "formal")))
def test_a_recalled_fact_is_the_fact_that_was_told(rng: random.Random, language: str, register: str) -> None:
    """What was told, what is noted and what is recalled carry the same value."""
    fact = personal_fact(rng)
    style = Style(language=language, register=register)
    assert fact.value in fact.told
    if fact.key != "colour" or language == "english":
        assert fact.value in render(fact.noted, style)
        assert fact.value in render(fact.recalled, style)


@given(st.sampled_from(("Ana", "Otto")))
def test_the_bot_introduces_itself_under_its_name(name: str) -> None:
    """A persona's name stands in the introduction; without one it is heed."""
    assert name in render(who(name))
    assert "heed" in render(who())


def test_the_answer_to_the_unknown_says_what_can_be_talked_about() -> None:
    """A person who asks for something else is told every topic there is."""
    text = render(UNKNOWN)
    assert all(topic in text for topic in ("animals", "food", "cities", "sports", "music", "plants"))


def test_the_unknown_is_almost_never_something_known() -> None:
    """Of 20,000 questions outside the world at most one in a thousand names a subject by a made-up word's chance."""
    rng = random.Random(0)
    names = {s.name.lower() for s in SUBJECTS}
    asked = [set(re.findall(r"\w+", unknown_ask(rng).lower())) for _ in range(20_000)]
    assert sum(bool(words & names) for words in asked) <= 20


@given(seeds)
def test_the_unknown_is_never_empty(rng: random.Random) -> None:
    """Noise, too, has at least one character."""
    assert unknown_ask(rng).strip()
