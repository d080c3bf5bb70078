"""One exchange of the synthetic world: a question, small talk, an exercise or a personal fact, and its answer.

Invariant: the order of the draws is fixed, because the committed weights were trained on them.
"""

import random

from engine.pocket.scene import Scene
from engine.pocket.style import DEFAULT, Content, Factual
from engine.pocket.subjects import DOMAINS, HELD_OUT_SUBJECTS, SUBJECTS, TRAINED_SUBJECTS, Subject
from engine.pocket.talk import (
    NOT_TOLD,
    SKILLS,
    SMALL_TALK,
    UNKNOWN,
    WHO_ASKS,
    exercise,
    personal_fact,
    unknown_ask,
    who,
)

PRACTISED = (*SKILLS, "add", "add", "repeat", "repeat")  # what is learned last is asked most


def ask_text(subject: Subject, lead: int, rng: random.Random) -> str:
    """Draw a question about a subject that asks for the fact `lead` (0: general)."""
    domain = DOMAINS[subject.domain]
    asks = domain.about if lead == 0 and rng.random() < 0.8 else domain.facts[lead].asks
    text = rng.choice(asks).format(s=domain.article + subject.name)
    return _worn(text, rng)


def _worn(text: str, rng: random.Random) -> str:
    """Write a question as people type it: without capitals or punctuation, or with a word in front."""
    kind = rng.random()
    if kind < 0.2:
        text = text.lower()
    elif kind < 0.3:
        text = text.rstrip("?").lower()
    if rng.random() < 0.08:
        text = rng.choice(("hey, ", "please ", "so ", "ok, ", "hmm, ", "and ")) + text
    return text


def exchange(scene: Scene) -> tuple[str, Content]:
    """Draw one message of a person and the content of its answer."""
    rng = scene.rng
    kind = rng.random()
    if isinstance(scene.last, Factual) and kind < 0.14:
        return _follow_up(scene, scene.last)
    if kind < 0.68:
        return question(scene)
    if kind < 0.79:
        return exercise(rng.choice(PRACTISED), rng)
    if kind < 0.87:
        return _small_talk(scene)
    return _personal(scene) if kind < 0.94 else (unknown_ask(rng), UNKNOWN)


def question(scene: Scene) -> tuple[str, Content]:
    """Draw a question about a subject and the content of its answer."""
    subject = _subject(scene)
    lead = scene.rng.choice((0, 0, 1, 2, 3))
    return ask_text(subject, lead, scene.rng), Factual(subject, lead)


def _subject(scene: Scene) -> Subject:
    share = scene.mix.held_out_share if scene.style == DEFAULT else scene.mix.styled_held_out_share
    if scene.is_plain and scene.rng.random() < share:
        return scene.rng.choice(HELD_OUT_SUBJECTS)
    return scene.rng.choice(SUBJECTS if scene.is_plain else TRAINED_SUBJECTS)


def _follow_up(scene: Scene, last: Factual) -> tuple[str, Content]:
    lead = scene.rng.randrange(4)
    asks = DOMAINS[last.subject.domain].facts[lead].follow_ups
    text = scene.rng.choice(asks)
    return (text[:1].upper() + text[1:] if scene.rng.random() < 0.3 else text), Factual(last.subject, lead)


def _small_talk(scene: Scene) -> tuple[str, Content]:
    rng = scene.rng
    if rng.random() < 0.2:
        return _worn(rng.choice(WHO_ASKS), rng), who(scene.persona)
    _, asks, answer = rng.choice(SMALL_TALK)
    text = rng.choice(asks)
    return (text[:1].upper() + text[1:] if rng.random() < 0.5 else text), answer


def _personal(scene: Scene) -> tuple[str, Content]:
    rng = scene.rng
    if scene.told and rng.random() < 0.7:
        fact = rng.choice(list(scene.told.values()))
        return rng.choice(fact.asks), fact.recalled
    fact = personal_fact(rng)
    if rng.random() < 0.35:
        return rng.choice(fact.asks), scene.told[fact.key].recalled if fact.key in scene.told else NOT_TOLD
    scene.told[fact.key] = fact
    return fact.told, fact.noted
