"""engine.pocket.exchanges: the questions people ask, and their answers."""

import random

from engine.pocket.exchanges import ask_text, exchange, question
from engine.pocket.scene import Scene
from engine.pocket.style import Factual, Plain
from engine.pocket.subjects import HELD_OUT_SUBJECTS, SUBJECTS


def test_a_question_names_its_subject() -> None:
    """Typing habits change capitals, signs and the first word, and never the name."""
    rng = random.Random(3)
    for subject in SUBJECTS:
        for lead in range(4):
            assert subject.name.lower() in ask_text(subject, lead, rng).lower()


def test_held_out_subjects_are_asked_about_before_any_wish_only() -> None:
    """Once a style was asked for, no question is about a held-out subject."""

    def asked(scene: Scene) -> list[str]:
        contents = [question(scene)[1] for _ in range(500)]
        return [content.subject.name for content in contents if isinstance(content, Factual)]

    held_out = {subject.name for subject in HELD_OUT_SUBJECTS}
    assert held_out & set(asked(Scene(random.Random(1))))
    assert not held_out & set(asked(Scene(random.Random(1), is_plain=False)))


def test_a_follow_up_stays_with_its_subject() -> None:
    """Some messages after an answer about a subject ask for another of its facts."""
    subject = SUBJECTS[0]
    scene = Scene(random.Random(1), last=Factual(subject, 0))
    asked = [exchange(scene) for _ in range(1000)]
    follow_ups = [text for text, content in asked if isinstance(content, Factual) and subject.name not in text.lower()]
    assert any(" it" in f" {text.lower()}" for text in follow_ups)


def test_every_kind_of_exchange_is_drawn() -> None:
    """There are questions about subjects, exercises and talk, and every message has an answer."""
    scene = Scene(random.Random(1))
    contents = [exchange(scene) for _ in range(1000)]
    assert all(text for text, _ in contents)
    kinds = [type(content) for _, content in contents]
    assert kinds.count(Factual) > kinds.count(Plain) > 50
    assert len(set(kinds)) == 3
