"""The names in the workshop's folders: files, keys and values, and those that training never has.

Half of what is drawn is made up of syllables: a name is to be copied, not remembered.
"""

import random
from collections.abc import Callable, Collection, Sequence
from pathlib import Path

from engine.pocket.listed import lines

_HERE = Path(__file__).parent
STEMS = lines(_HERE / "stems.txt")
HELD_OUT_STEMS = "loom kettle harbor beacon winch kiosk sauna turbine ladder magnet furnace dock".split()
KEYS = lines(_HERE / "keys.txt")
HELD_OUT_KEYS = "torque voltage brightness capacity altitude priority salt quota pitch depot gain humidity mass opacity tariff vendor".split()
WORDS = lines(_HERE / "values.txt")
HELD_OUT_WORDS = "violet bronze lisbon eager marble tuesday mango hollow".split()
SUFFIXES = ("ini", "cfg", "txt", "conf")

_ONSETS = "b c d f g h j k l m n p r s t v w z br cl dr gr pl st tr".split()
_CODAS = ("", "", "", "n", "r", "l", "s", "t", "k", "m")


def invented(rng: random.Random) -> str:
    """Make up a word of two or three syllables, lowercase."""
    syllables = (
        rng.choice(_ONSETS) + rng.choice("aeiou") + (rng.choice(_CODAS) if i else "") for i in range(rng.randint(2, 3))
    )
    word = "".join(syllables)
    held_out = (*HELD_OUT_STEMS, *HELD_OUT_KEYS, *HELD_OUT_WORDS)
    return "bado" if word in held_out else word


def _draw(known: Sequence[str], held_out: Sequence[str], rng: random.Random, *, is_held_out: bool) -> str:
    if is_held_out:
        return rng.choice(held_out)
    return rng.choice(known) if rng.random() < 0.5 else invented(rng)


def stem(rng: random.Random, *, is_held_out: bool = False) -> str:
    """Draw the name of a file, without its suffix."""
    return _draw(STEMS, HELD_OUT_STEMS, rng, is_held_out=is_held_out)


def key(rng: random.Random, *, is_held_out: bool = False) -> str:
    """Draw a key."""
    return _draw(KEYS, HELD_OUT_KEYS, rng, is_held_out=is_held_out)


def value(rng: random.Random, *, is_held_out: bool = False) -> str:
    """Draw a value: a number of up to four digits, or a word."""
    if rng.random() < 0.6:
        return str(rng.randint(1, 10 ** rng.randint(1, 4) - 1))
    return _draw(WORDS, HELD_OUT_WORDS, rng, is_held_out=is_held_out)


def apart(count: int, one: Callable[..., str], rng: random.Random, *, is_held_out: bool = False) -> list[str]:
    """Draw `count` different names with one of the functions above."""
    found: list[str] = []
    for _ in range(count):
        found.append(another(one, found, rng, is_held_out=is_held_out))
    return found


def another(one: Callable[..., str], taken: Collection[str], rng: random.Random, *, is_held_out: bool = False) -> str:
    """Draw a name that is not taken."""
    while (name := one(rng, is_held_out=is_held_out)) in taken:
        pass
    return name
