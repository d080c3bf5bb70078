"""Cases: questions and corrections drawn from what the pocket model was never taught on.

Owns the draw. Everything a person corrects with is a held-out phrasing (and a held-out name). Every probe is about a
subject that was trained in every style and that no feedback, note or hindsight was ever about (ADR 4), and the probes'
subjects are never those a person talks about before. Invariant: the same seed and
labels give the same words, anything else that is measured.
"""

import random
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from engine.pocket.exchanges import ask_text
from engine.pocket.style import DEFAULT, PREFERENCES, Direction, Factual, Style, render
from engine.pocket.subjects import SUBJECTS, Subject
from engine.pocket.talk import SKILLS, exercise
from engine.pocket.wishes import HELD_OUT_NAMES, apply, held_out_wish, wish
from engine.prompts.hindsight import Hindsight, with_hindsight, with_notes

NUM_TOLD = 4  # of the subjects never taught on, how many a person corrects answers about; the rest is probed
NUM_FACTS = 4
MAX_DRAWS = 200  # per question wanted; the world has far more different ones
Messages = list[dict[str, str]]


@dataclass(frozen=True)
class Question:
    """One question about a subject, and what its answer must carry."""

    text: str
    content: Factual


@dataclass(frozen=True)
class Wish:
    """One correction: the direction it asks for, the name in it, and its words."""

    direction: Direction
    name: str
    text: str

    @property
    def preference(self) -> str:
        """The preference, one of the twelve."""
        return self.direction[0]

    @property
    def wanted(self) -> str:
        """The value the preference has once the wish is granted."""
        value = PREFERENCES[self.preference][self.direction[1]]
        return self.name if value == "*" else value


@dataclass(frozen=True)
class Exercise:
    """A question that has nothing to do with style, and its one right answer."""

    skill: str
    text: str
    expected: str


@dataclass(frozen=True)
class ToldWish:
    """A wish told in context, to see whether the model itself understands it."""

    way: str
    messages: Messages
    wish: Wish


def draw(seed: int, *labels: object) -> random.Random:
    """Return the random source for one purpose."""
    return random.Random("/".join(map(str, (seed, *labels))))


def subjects(seed: int) -> tuple[list[Subject], list[Subject]]:
    """Return the subjects never taught on, split by a seed: (those of corrected answers, those of probes)."""
    held_out = [s for s in SUBJECTS if s.is_held_out]
    draw(seed, "subjects").shuffle(held_out)
    return held_out[:NUM_TOLD], held_out[NUM_TOLD:]


def probes(seed: int, count: int, *labels: object) -> list[Question]:
    """Different questions about subjects the person never mentioned."""
    return _questions(subjects(seed)[1], count, draw(seed, "probes", *labels))


def corrected(seed: int, count: int, *labels: object) -> list[Question]:
    """Different questions whose answers the person corrects."""
    return _questions(subjects(seed)[0], count, draw(seed, "corrected", *labels))


def earlier(seed: int, count: int, *labels: object) -> list[Question]:
    """Different questions a person asked before and was content with: about any subject that is not probed."""
    told, _ = subjects(seed)
    known = [s for s in SUBJECTS if not s.is_held_out]
    return _questions([*known, *told], count, draw(seed, "earlier", *labels))


def _questions(about: Sequence[Subject], count: int, rng: random.Random) -> list[Question]:
    found: dict[str, Question] = {}
    for _ in range(MAX_DRAWS * max(count, 1)):
        if len(found) == count:
            break
        content = Factual(rng.choice(about), rng.randrange(NUM_FACTS))
        text = ask_text(content.subject, content.lead, rng)
        found.setdefault(text, Question(text, content))
    return list(found.values())


def wish_for(seed: int, direction: Direction, *labels: object, name: str = "") -> Wish:
    """Return a wish in words the model never saw."""
    rng = draw(seed, "wish", *direction, *labels)
    name = name or rng.choice(HELD_OUT_NAMES)
    return Wish(direction, name, held_out_wish(direction, name, rng))


def opposite(seed: int, first: Wish, *labels: object) -> Wish:
    """Return a wish that takes another one back."""
    preference, side = first.direction
    back: Direction = (preference, 0 if side == 1 else 1)
    return wish_for(seed, back, "back", *labels, name=first.name)


def shuffled(seed: int, preferences: Sequence[str], *labels: object) -> list[str]:
    """Return the preferences in an order of the seed."""
    return draw(seed, "sequence", *labels).sample(list(preferences), len(preferences))


def sequences(seed: int, preferences: Sequence[str], length: int) -> list[list[str]]:
    """Return the preferences in the order of the seed, cut into runs of `length`; a rest too short for one is filled
    up.
    """
    order = list(preferences)
    draw(seed, "sequence").shuffle(order)
    runs = [order[i : i + length] for i in range(0, len(order), length)]
    missing = min(length, len(order)) - len(runs[-1])
    return [*runs[:-1], runs[-1] + order[:missing]]


def exercises(seed: int, count: int, avoid: Collection[str], *labels: object) -> list[Exercise]:
    """About `count` different exercises, as many of each skill; none of those in `avoid` (what learning rehearses)."""
    return [e for skill in SKILLS for e in _of_skill(seed, skill, -(-count // len(SKILLS)), avoid, *labels)]


def _of_skill(seed: int, skill: str, count: int, avoid: Collection[str], *labels: object) -> list[Exercise]:
    rng = draw(seed, "skill", skill, *labels)
    found: dict[str, Exercise] = {}
    for _ in range(MAX_DRAWS * count):
        if len(found) == count:
            break
        text, content = exercise(skill, rng)
        if text not in avoid:
            found.setdefault(text, Exercise(skill, text, render(content)))
    return list(found.values())


# --- told in context: what the model understands without any training ------------------------------------------


def told_next_turn(seed: int, direction: Direction, number: int) -> ToldWish:
    """Question, answer, then the wish as the next thing the person says."""
    asked, wished, start, before = _scene(seed, direction, "next turn", number)
    turns = [
        {"role": "user", "content": asked.text},
        {"role": "assistant", "content": render(asked.content, start)},
        {"role": "user", "content": wished.text},
    ]
    return ToldWish("next turn", [*before, *turns], wished)


def told_in_hindsight(seed: int, direction: Direction, number: int) -> ToldWish:
    """Return a question with the wish in the hindsight block, as the teacher of an update reads it."""
    asked, wished, _, before = _scene(seed, direction, "hindsight", number)
    turns = [*before, {"role": "user", "content": asked.text}]
    return ToldWish("hindsight", with_hindsight(turns, Hindsight(wished.text)), wished)


def _scene(seed: int, direction: Direction, *labels: object) -> tuple[Question, Wish, Style, Messages]:
    """Return a question, a wish, the style to wish away from, and the messages that brought that style about."""
    asked = _questions(subjects(seed)[1], 1, draw(seed, "told", *direction, *labels))[0]
    wished = wish_for(seed, direction, *labels)
    preference, side = direction
    if side == 1:
        return asked, wished, DEFAULT, []
    away: Direction = (preference, 1)
    standing = wish([away], wished.name, draw(seed, "standing", *direction, *labels))
    return asked, wished, apply(DEFAULT, [away], wished.name), with_notes([], [standing])
