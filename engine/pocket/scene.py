"""The state of a conversation that is being written, how often each kind is drawn, and the wishes drawn for it.

Invariant: the order of the draws is fixed, because the committed weights were trained on them.
"""

import random
from dataclasses import dataclass, field

from engine.pocket.style import DEFAULT, PREFERENCES, Content, Direction, Style
from engine.pocket.subjects import HELD_OUT_SUBJECTS
from engine.pocket.talk import PersonalFact
from engine.pocket.wishes import HELD_OUT_NAMES, NAMES, apply, wish

_NOT_INVENTED = {*HELD_OUT_NAMES, *(s.name.capitalize() for s in HELD_OUT_SUBJECTS)}
_ONSETS = ("", *"b br c ch d dr f fl g gr h j k kl l m n p pr r s st t tr v w z".split())
_CODAS = ("", "", "", "", *"s l n r k t d x th m st".split())


@dataclass(frozen=True)
class Mix:
    """How often conversations of each kind are drawn."""

    notes_share: float = 0.48
    many_notes_share: float = 0.4  # of conversations with notes: five or more
    apart_share: float = 0.5  # of conversations with notes: every note about another preference
    hindsight_share: float = 0.33
    invented_names_share: float = 0.5  # of names; the rest come from a list
    system_share: float = 0.36  # conversations whose system prompt wishes for a style
    held_out_share: float = 0.2  # of questions before any wish: about held-out subjects
    styled_held_out_share: float = 0.6  # the same under a system prompt that wishes
    turns: tuple[float, ...] = (0.58, 0.28, 0.10, 0.04)  # conversations of one, two, three, four exchanges
    drill_share: float = 0.12  # conversations of skills or facts alone
    restored_share: float = 0.16  # conversations that begin in another style, which the person wants no more
    undone_share: float = 0.05  # conversations that begin in a style that was not asked for, and go on in the default
    hint_share: float = 0.1  # of wishes: told as a hint
    workshop_share: float = 0.33  # conversations of an agent at work
    strange_share: float = 0.05  # notes and feedback about ways of working, which change nothing in a chat


# Short and plain, while the model learns to read.
START = Mix(many_notes_share=0.0, turns=(0.75, 0.25), drill_share=0.2, hint_share=0.0, workshop_share=0.0)
FULL = Mix()
WORKSHOP = Mix(workshop_share=0.9)  # an agent at work, who can be talked to
# What shows in the fewest letters of an answer is asked for more often.
_WEIGHTS = dict.fromkeys(PREFERENCES, 1.0) | {"units": 2.5, "case": 1.5, "name": 1.8, "numbers": 1.3, "length": 1.2}


@dataclass
class Scene:
    """The state of a conversation that is being written."""

    rng: random.Random
    mix: Mix = FULL
    style: Style = DEFAULT
    is_plain: bool = True  # no style was ever asked for: held-out subjects may appear
    persona: str = "heed"
    last: Content | None = None
    told: dict[str, PersonalFact] = field(default_factory=dict)
    previous: Style = DEFAULT  # the style before the last wish


def draw_wish(scene: Scene, count: int) -> tuple[str, list[Direction], str]:
    """Draw a wish for `count` preferences. Return its words, its directions and the name in it."""
    return word_wish(scene, _directions(scene, count))


def word_wish(scene: Scene, directions: list[Direction]) -> tuple[str, list[Direction], str]:
    """Draw the words of a wish. Return them with its directions and the name in it."""
    name = scene.rng.choice(NAMES) if scene.rng.random() < 1 - scene.mix.invented_names_share else _invented_name(scene)
    return wish(directions, name, scene.rng, scene.mix.hint_share), directions, name


def grant(scene: Scene, directions: list[Direction], name: str) -> None:
    """In place: apply the directions of a wish to the style of the scene."""
    scene.previous = scene.style
    scene.style = apply(scene.style, directions, name)
    scene.is_plain = False


def number_of_wishes(rng: random.Random) -> int:
    """Draw how many preferences one message is about, 1 to 3."""
    return rng.choices((1, 2, 3), (0.78, 0.16, 0.06))[0]


def directions_apart(scene: Scene, count: int) -> list[Direction]:
    """Draw `count` different preferences in random order, those with more weight more often."""
    rank = {p: scene.rng.random() ** (1 / weight) for p, weight in _WEIGHTS.items()}
    return [_direction(p, scene) for p in sorted(rank, key=rank.__getitem__, reverse=True)[:count]]


def _directions(scene: Scene, count: int) -> list[Direction]:
    """Draw `count` different preferences, one of them often among those that were changed before."""
    rng = scene.rng
    changed = [p for p, (default, _) in PREFERENCES.items() if getattr(scene.style, p) != default]
    first = _drawn(changed if changed and rng.random() < 0.6 else list(PREFERENCES), rng)
    others = rng.sample([p for p in PREFERENCES if p != first], count - 1)
    return [_direction(p, scene) for p in (first, *others)]


def _direction(preference: str, scene: Scene) -> Direction:
    """Draw a side, mostly not the present one: people ask for a change more often than for what they have."""
    is_default = getattr(scene.style, preference) == PREFERENCES[preference][0]
    is_change = scene.rng.random() < 0.85
    return preference, 1 if is_default == is_change else 0


def _drawn(preferences: list[str], rng: random.Random) -> str:
    return rng.choices(preferences, [_WEIGHTS[p] for p in preferences])[0]


def _invented_name(scene: Scene) -> str:
    """Make up a name, to be copied and not remembered; never a held-out one, nor a held-out subject."""
    rng = scene.rng
    syllables = (rng.choice(_ONSETS) + rng.choice("aeiouy") + rng.choice(_CODAS) for _ in range(rng.randint(1, 3)))
    name = "".join(syllables).capitalize()
    return "Ano" if name in _NOT_INVENTED or len(name) < 3 else name
