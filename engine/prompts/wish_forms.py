"""The form that a wish asks for, as a plain instruction: "you ramble" is "Answer very briefly.".

Pure. Owns the reading of wish_forms.json: instructions, the words that ask for each, and which of them no answer can
follow together. A model of some hundred million weights follows plain instructions, and few of the words in which
people ask for the same; to such a model a wish is told as the instruction. English first, and the plainest words of
six other languages. Invariants: words that ask for several forms, for one under a condition, or for a word of the
person's own choice (a name, a beginning) are no instruction; nothing is told that the words do not ask for.
"""

import json
import re
from collections.abc import Sequence
from pathlib import Path

_MAX_CHARS = 100  # of a wish for one thing; a longer text says more
_DENIED_WITHIN = 25  # characters
_TOLD = json.loads(Path(__file__).with_suffix(".json").read_text(encoding="utf-8"))


def _any_of(cues: Sequence[str]) -> str:
    """Return a pattern for any of some words; those of scripts without blanks stand anywhere."""
    spaced = "|".join(cue for cue in cues if not _is_han(cue))
    return "|".join([*([rf"\b(?:{spaced})\b"] if spaced else []), *filter(_is_han, cues)])


def _is_han(cue: str) -> bool:
    return any("\u4e00" <= char <= "\u9fff" for char in cue)


_WORDS = {name: f"(?:{_any_of(cues)})" for name, cues in _TOLD["words"].items()}


def _pattern(cues: Sequence[str]) -> re.Pattern[str]:
    named = [cue for cue in cues if cue.startswith("<")]
    found = "|".join(filter(None, [_any_of([cue for cue in cues if cue not in named]), *named]))
    for name, words in _WORDS.items():
        found = found.replace(name, words)
    return re.compile(found)


INSTRUCTIONS = {instruction: _pattern(cues) for instruction, cues in _TOLD["instructions"].items()}
_STRONGER = [tuple(pair) for pair in _TOLD["stronger"]]  # where the words of both are there, the first is asked for
_EXCLUSIVE = [frozenset(group) for group in _TOLD["exclusive"]]  # of which an answer can have one
_DENIABLE = frozenset(_TOLD["deniable"])  # asked for, unless the words before say not to
_DENIED = re.compile(rf"{_WORDS['<no>']}.{{0,{_DENIED_WITHIN}}}$")
_MORE_THAN_FORM = re.compile(_any_of(_TOLD["more"]))
_ONESELF = re.compile(_any_of(_TOLD["oneself"]))
_OPPOSED = re.compile(rf"(?:{_any_of(_TOLD['opposed'])}).*")  # "lists instead of paragraphs" asks for lists


def instruction_of(wish: str) -> str:
    """Return the plain instruction that a wish is; empty if its words ask for no form, or for more than one."""
    words = _OPPOSED.sub("", " ".join(wish.lower().split()))
    if len(words) > _MAX_CHARS or _MORE_THAN_FORM.search(words):
        return ""
    asked = {instruction for instruction in INSTRUCTIONS if _asks(words, instruction)}
    asked -= {weaker for stronger, weaker in _STRONGER if stronger in asked and weaker in asked}
    return asked.pop() if len(asked) == 1 else ""


def exclude(instruction: str, other: str) -> bool:
    """Return True if two instructions ask for forms that no answer has together; an empty one asks for none."""
    return instruction != other and any({instruction, other} <= group for group in _EXCLUSIVE)


def tells_of_oneself(text: str) -> bool:
    """Return True if a text is about the one who says it, and so may be no wish: "I teach English"."""
    return _ONESELF.search(text.lower()) is not None


def _asks(words: str, instruction: str) -> bool:
    found = INSTRUCTIONS[instruction].search(words)
    return found is not None and not (instruction in _DENIABLE and _DENIED.search(words[: found.start()]))
