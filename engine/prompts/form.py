"""The form of an answer, in words: what a person's own wording of one answer asks of all others.

Pure. A model that is too small to tell form from content writes about tea in every answer once an answer about tea
stands in its prompt as an example. To such a model the example is told by its form. Invariant: no word of the example
is in it.
"""

import re
import unicodedata

from engine.prompts.language import language_of

_ENDS = re.compile(r"[.!?…](?=\s|$)|[\u3002\uff01\uff1f]")
_NUMBERS = ("one sentence", "two sentences", "three sentences")
_ROUNDED_FROM = 10  # words, from which on they are counted in fives
_MIN_LETTERS = 4  # in which letters an example is written shows from here on


def form_of(example: str, answer: str) -> str:
    """Return an instruction for the example's form: length, list, letters, emoji, and language if not the answer's.

    Blocking: the first call loads what tells languages apart, which takes a second.
    """
    found = [_language(example, answer), _shape(example), _length(example), _letters(example), _emoji(example)]
    return f"Answer {', '.join(filter(None, found)) or 'at length'}."


def _language(example: str, answer: str) -> str:
    wanted, found = language_of(example), language_of(answer)
    return f"in {wanted}" if wanted and found and wanted != found else ""


def _shape(example: str) -> str:
    if re.match(r"\s*[-*•] ", example):
        return "as a list of bullet points"
    if re.match(r"\s*1[.)] ", example):
        return "as a numbered list"
    count = max(1, len(_ENDS.findall(example)))
    return f"in {_NUMBERS[count - 1]}" if count <= len(_NUMBERS) else ""


def _length(example: str) -> str:
    """Return the number of words; nothing for scripts that write none apart."""
    if any(unicodedata.category(char) == "Lo" for char in example):
        return ""
    count = len(example.split())
    if count == 1:
        return "in about one word"
    return f"in about {count if count < _ROUNDED_FROM else 5 * round(count / 5)} words"


def _letters(example: str) -> str:
    letters = [char for char in example if char.isalpha() and char.lower() != char.upper()]
    if len(letters) < _MIN_LETTERS:
        return ""
    if all(char.islower() for char in letters):
        return "in lowercase letters"
    return "in capital letters" if all(char.isupper() for char in letters) else ""


def _emoji(example: str) -> str:
    return "with an emoji" if any(unicodedata.category(char) == "So" for char in example) else ""
