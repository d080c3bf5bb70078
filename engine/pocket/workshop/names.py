"""The names in the workshop's folders: files, keys and values, and those that training never has.

Two thirds of what is drawn are on no list: syllables, words that people say of other things, and pieces of such words
put together. A name is to be copied, not remembered, and every piece of the vocabulary has to be copied somewhere.
"""

import random
import re
from collections.abc import Callable, Collection, Sequence
from functools import cache
from pathlib import Path

from engine.pocket.hints import HINTS
from engine.pocket.listed import lines
from engine.pocket.subjects import HELD_OUT_SUBJECTS

_HERE = Path(__file__).parent
STEMS = lines(_HERE / "stems.txt")
HELD_OUT_STEMS = "loom kettle harbor beacon winch kiosk sauna turbine ladder magnet furnace dock".split()
KEYS = lines(_HERE / "keys.txt")
HELD_OUT_KEYS = "torque voltage brightness capacity altitude priority salt quota pitch depot gain humidity mass opacity tariff vendor".split()
WORDS = lines(_HERE / "values.txt")
HELD_OUT_WORDS = "violet bronze lisbon eager marble tuesday mango hollow".split()
SUFFIXES = ("ini", "cfg", "txt", "conf")

_SUBJECTS = {word for subject in HELD_OUT_SUBJECTS for word in subject.name.lower().split()}  # of chats
_PIECES = lines(_HERE / "pieces.txt")  # of letters, as the tokenizer cuts words: each is to be copied somewhere
_ONSETS = "b c d f g h j k l m n p r s t v w z br cl dr gr pl st tr".split()
_CODAS = ("", "", "", "n", "r", "l", "s", "t", "k", "m")


def invented(rng: random.Random) -> str:
    """Make up a lowercase word, never one that is held out."""
    word = rng.choice((_syllables, _said, _spliced, _joined))(rng)
    held_out = (*HELD_OUT_STEMS, *HELD_OUT_KEYS, *HELD_OUT_WORDS, *_SUBJECTS)
    return "bado" if word in held_out else word


def _syllables(rng: random.Random) -> str:
    return "".join(
        rng.choice(_ONSETS) + rng.choice("aeiou") + (rng.choice(_CODAS) if i else "") for i in range(rng.randint(2, 3))
    )


def _said(rng: random.Random) -> str:
    return rng.choice(_said_words())


def _spliced(rng: random.Random) -> str:
    """Put the begin of one word before the end of another."""
    one, other = _said(rng), _said(rng)
    return one[: rng.randint(1, len(one))] + other[rng.randint(0, len(other) - 1) :]


def _joined(rng: random.Random) -> str:
    return "".join(rng.choices(_PIECES, k=rng.randint(1, 3)))


@cache
def _said_words() -> tuple[str, ...]:
    """Return the words of all hints, of three to eight letters."""
    said = " ".join(text for texts in HINTS.values() for text in texts).lower()
    return tuple(sorted({word for word in re.findall("[a-z]+", said) if 3 <= len(word) <= 8}))


def _draw(known: Sequence[str], held_out: Sequence[str], rng: random.Random, *, is_held_out: bool) -> str:
    if is_held_out:
        return rng.choice(held_out)
    return rng.choice(known) if rng.random() < 0.35 else invented(rng)


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
