"""Checks that a program can make: does an answer follow a wish? For answers of any model, in any world.

Pure functions of the answer, the base model's answer to the same prompt, and the wish's own word. Invariant: a
degenerate text (empty, one token repeated, itself over and over, no letters) follows nothing, not even "shorter"; nor
does one that says the person's own words back to them, be it the wish or the question.
"""

import re
import unicodedata
from collections import Counter
from collections.abc import Callable
from functools import cache

from py3langid.langid import MODEL_FILE, LanguageIdentifier

Check = Callable[[str, str, str], bool]  # (answer, the base model's answer, the word of the wish)
SHORTER, LONGER = 0.6, 1.4  # times the base answer's words
CONCISE_WORDS = 30
MIN_REPEATED_TOKENS = 8  # a text this long may be judged by how often it repeats itself
MIN_DISTINCT_TRIGRAMS = 0.5
ECHO_WORDS = 6  # of the person's, one after another; of a shorter wish all of them
MIN_ECHO_WORDS = 4  # a wish of fewer words could be said by chance
LIST_ITEMS = 2
_MARK, _NUMBER = r"[-*•]", r"\d{1,2}[.)]"
_BULLET = re.compile(rf"^\s*{_MARK}\s+\S", re.MULTILINE)
_NUMBERED = re.compile(rf"^\s*{_NUMBER}\s+\S", re.MULTILINE)
_BEFORE_ITEM = re.compile(rf"^\s*(?:{_MARK}|{_NUMBER})\s+", re.MULTILINE)
_SENTENCE_END = re.compile(r"[.!?…]+(?=\s|$)")
_CONTRACTION = re.compile(r"\b\w+[\u2019'](?:s|t|re|ve|ll|d|m)\b", re.IGNORECASE)
_SLANG = re.compile(
    r"\b(hey|yeah|yep|nope|gonna|wanna|gotta|kinda|stuff|guys|cool|awesome|ok|okay|lol)\b", re.IGNORECASE
)
_TOLD_APART = ["de", "en", "es", "fr", "it", "nl", "pt"]  # a short text is like too many of 139 languages
_LEAST_SURE = 0.5  # share of the probability


def is_degenerate(text: str) -> bool:
    """Return True for a text that says nothing: empty, without letters, one token or one passage repeated.

    One sentence as item 1, 2, 3 of a list is repeated, too: marks and numbers of items are no words.
    """
    tokens = _BEFORE_ITEM.sub("", text).lower().split()
    if not any(character.isalpha() for character in text):
        return True
    if len(tokens) >= 3 and len(set(tokens)) == 1:
        return True
    return _repeats_itself(tokens) or _is_one_letter(text)


def _repeats_itself(tokens: list[str]) -> bool:
    if len(tokens) < MIN_REPEATED_TOKENS:
        return False
    trigrams = list(zip(tokens, tokens[1:], tokens[2:], strict=False))
    return len(set(trigrams)) / len(trigrams) < MIN_DISTINCT_TRIGRAMS


def _is_one_letter(text: str) -> bool:
    letters = Counter(character for character in text.lower() if character.isalpha())
    return letters.total() >= MIN_REPEATED_TOKENS and len(letters) == 1


def echoes(text: str, said: str) -> bool:
    """Return True if an answer says back to the person, word for word, what they asked for."""
    words, spoken = (re.findall(r"\w+", part.lower()) for part in (said, text))
    size = min(ECHO_WORDS, len(words))
    return size >= MIN_ECHO_WORDS and bool(_runs(words, size) & _runs(spoken, size))


def repeats(text: str, question: str) -> bool:
    """Return True if an answer has no word that the question has not: it says the question again."""
    return set(re.findall(r"\w+", text.lower())) <= set(re.findall(r"\w+", question.lower()))


def _runs(words: list[str], size: int) -> set[tuple[str, ...]]:
    return {tuple(words[i : i + size]) for i in range(len(words) - size + 1)}


def follows_wish(check: str, text: str, base: str = "", word: str = "") -> bool:
    """Return True if an answer follows the wish whose check has this name; a degenerate one follows nothing."""
    return not is_degenerate(text) and CHECKS[check](text, base, word)


def num_words(text: str) -> int:
    """Return the number of words."""
    return len(text.split())


def num_sentences(text: str) -> int:
    """Return the number of sentences; a last one without a full stop counts."""
    stripped = text.strip()
    ends = len(_SENTENCE_END.findall(stripped))
    return ends if not stripped or _SENTENCE_END.search(stripped[-1:]) else ends + 1


def has_emoji(text: str) -> bool:
    """Return True if a pictograph is in the text."""
    return any(unicodedata.category(c) == "So" and ord(c) >= 0x2600 for c in text)


def is_list(text: str) -> bool:
    """Return True if at least two lines are bullets or numbers."""
    return len(_BULLET.findall(text)) + len(_NUMBERED.findall(text)) >= LIST_ITEMS


def is_in(code: str, text: str) -> bool:
    """Return True if a text is in this language rather than in one of six others (py3langid). Blocking."""
    found, share = _identifier().classify(text)
    return bool(found == code and share >= _LEAST_SURE)


@cache
def _identifier() -> LanguageIdentifier:
    identifier = LanguageIdentifier.from_model_file(MODEL_FILE, norm_probs=True)
    identifier.set_languages(_TOLD_APART)
    return identifier


def is_formal(text: str) -> bool:
    """Return True if there is no contraction, no slang, no exclamation mark and no emoji."""
    found = _CONTRACTION.search(text) or _SLANG.search(text) or "!" in text
    return not found and not has_emoji(text)


def _cased(text: str) -> str:
    return "".join(c for c in text if c.lower() != c.upper())


def _ends_with(text: str, word: str) -> bool:
    return text.strip().rstrip(".!?… ").lower().endswith(word.rstrip(".!?").lower())


CHECKS: dict[str, Check] = {
    "shorter": lambda text, base, _: num_words(text) <= SHORTER * num_words(base),
    "longer": lambda text, base, _: num_words(text) >= LONGER * num_words(base),
    "one_sentence": lambda text, *_: num_sentences(text) == 1,
    "list": lambda text, *_: is_list(text),
    "numbered": lambda text, *_: len(_NUMBERED.findall(text)) >= LIST_ITEMS,
    "no_list": lambda text, *_: not _BULLET.search(text) and not _NUMBERED.search(text),
    "lowercase": lambda text, *_: _cased(text) == _cased(text).lower(),
    "capitals": lambda text, *_: _cased(text) == _cased(text).upper() != "",
    "begins_with": lambda text, _, word: text.strip().lower().startswith(word.lower()),
    "ends_with": lambda text, _, word: _ends_with(text, word),
    "spanish": lambda text, *_: is_in("es", text),
    "english": lambda text, *_: is_in("en", text),
    "emoji": lambda text, *_: has_emoji(text),
    "no_emoji": lambda text, *_: not has_emoji(text),
    "name": lambda text, _, word: re.search(rf"\b{re.escape(word)}\b", text, re.IGNORECASE) is not None,
    "formal": lambda text, *_: is_formal(text),
    "concise": lambda text, *_: num_words(text) <= CONCISE_WORDS,
    "identity": lambda text, _, word: re.search(rf"\b{re.escape(word)}\b", text, re.IGNORECASE) is not None,
}
