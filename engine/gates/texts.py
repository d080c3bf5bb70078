"""Gates on whole texts, for consolidations: entities kept, entities invented, form kept; and how alike answers are.

Pure. No function generates a text. Where capitals do not tell the names of a text (`can_tell_names`) the shares are
those of its numbers, paths and mentions alone, and the verdict has the share of such answers. The definitions are those
of the earlier systems: entity preservation (EPR), fabrication (FR) and compliance with the expected form (SC) of
mnemonic, self-ROUGE-L of CLaaS; here a gold answer takes the place of raw input, and its form that of the schema.
"""

import json
import re
import unicodedata
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from itertools import combinations, pairwise

from engine.config import GateConfig

_MARKED = re.compile(
    r"@\w+"  # mentions
    r"|(?:/[\w.-]+){2,}"  # paths
)
_NUMBER = re.compile(r"\bv?\d+(?:[.,:]\d+)*\b")  # numbers, times and versions
_INNER = re.compile(r"(?<=[^\W\d_] |[,;:] )[^\W\d_]+\b")  # words within a sentence
_MOST_CAPITALS = 0.2  # of the words within sentences; beyond it capitals mark more than names, as in German
_FEW_WORDS = 8  # of which no share is told
_WORD = re.compile(r"\w+")
_BULLET = re.compile(r"^\s*(?:[-*\u2022]|\d+[.)])\s", re.MULTILINE)
_ECHO = re.compile(r"<\|[a-z_]+\|>|Notes about this person|\[Feedback of this person")  # parts of a prompt


@dataclass(frozen=True)
class Written:
    """An answer that the person approved, and the candidate's answer to the same prompt."""

    gold: str
    text: str
    is_ended: bool = True  # it ended by itself; False if it ran into the limit of tokens


@dataclass(frozen=True)
class TextVerdict:
    """The three figures over a set of approved answers, and their checks."""

    preserved: float  # EPR, 1 if there was nothing to keep
    fabricated: float  # FR
    compliant: float  # SC
    checks: dict[str, bool]
    unjudged: float = 0.0  # share of the answers whose names could not be told, so that nothing was said about them

    @property
    def is_accepted(self) -> bool:
        """Return True if all three checks pass."""
        return all(self.checks.values())


def entities(text: str, *, has_names: bool = True) -> set[str]:
    """Return the numbers, versions, paths, mentions, CamelCase and, if wanted, proper nouns of a text, in lower case.

    A proper noun is a word that begins with a capital within a sentence, in any script that has capitals.
    """
    spaced = apart(text)
    found = {*_MARKED.findall(text), *_NUMBER.findall(_MARKED.sub(" ", spaced))}
    found |= {word for word in _WORD.findall(spaced) if _is_camel(word)}
    if has_names:
        found |= {word for word in _INNER.findall(text) if _is_capitalised(word)}
    return {entity.lower() for entity in found}


def can_tell_names(text: str) -> bool:
    """Return True if capitals tell the names of a text: not in scripts without them, nor where nouns have them."""
    letters = [char for char in text if char.isalpha()]
    if 2 * sum(char.lower() == char.upper() for char in letters) > len(letters):
        return False
    inner = _INNER.findall(text)
    return len(inner) < _FEW_WORDS or sum(map(_is_capitalised, inner)) <= _MOST_CAPITALS * len(inner)


def preserved_share(gold: str, text: str) -> float:
    """Return EPR = #{entities of the gold answer in the text} / #{entities of the gold answer}; 1 without any.

    A number must stand by itself: the 4 of "14" is not kept.
    """
    wanted = entities(gold, has_names=can_tell_names(gold))
    return sum(_contains(text.lower(), entity) for entity in wanted) / len(wanted) if wanted else 1.0


def fabricated_share(gold: str, text: str) -> float:
    """Return FR = #{entities of the text that are not in the gold answer} / #{entities of the text}; 0 without any.

    A word counts as contained in any capitals: mnemonic's own measure took a sentence's first word for an invention.
    """
    found = entities(text, has_names=can_tell_names(gold) and can_tell_names(text))
    return sum(not _contains(gold.lower(), entity) for entity in found) / len(found) if found else 0.0


def is_sound(text: str) -> bool:
    """Return True if a text is not empty, echoes no prompt and closes its code blocks."""
    return bool(text.strip()) and not _ECHO.search(text) and text.count("```") % 2 == 0


def is_compliant(written: Written) -> bool:
    """Return True if a text ends, echoes no prompt, and is JSON, a list or prose like its gold answer."""
    text = written.text.strip()
    if not text or not written.is_ended or (_ECHO.search(text) and not _ECHO.search(written.gold)):
        return False
    same_list = bool(_BULLET.search(text)) == bool(_BULLET.search(written.gold))
    return same_list and text.count("```") % 2 == 0 and (_is_json(text) or not _is_json(written.gold))


def judge_texts(written: Sequence[Written], config: GateConfig) -> TextVerdict:
    """Check mean EPR >= min_preserved, mean FR <= max_fabricated and SC >= min_compliant.

    Raises ValueError without answers.
    """
    if not written:
        raise ValueError("an empty gold set says nothing about a candidate")
    preserved = _mean([preserved_share(w.gold, w.text) for w in written])
    fabricated = _mean([fabricated_share(w.gold, w.text) for w in written])
    compliant = _mean([float(is_compliant(w)) for w in written])
    checks = {
        "entities kept": preserved >= config.min_preserved,
        "nothing invented": fabricated <= config.max_fabricated,
        "form kept": compliant >= config.min_compliant,
    }
    unjudged = _mean([float(not (can_tell_names(w.gold) and can_tell_names(w.text))) for w in written])
    return TextVerdict(preserved, fabricated, compliant, checks, unjudged)


def rouge_l(first: Sequence[Hashable], second: Sequence[Hashable]) -> float:
    """Return ROUGE-L F1 = 2 LCS / (m + n) (Lin 2004, section 3); 1 for two empty sequences.

    LCS is the length of the longest common subsequence.
    """
    if not first and not second:
        return 1.0
    row = [0] * (len(second) + 1)
    for item in first:
        diagonal = 0
        for j, other in enumerate(second, 1):
            diagonal, row[j] = row[j], diagonal + 1 if item == other else max(row[j], row[j - 1])
    return 2 * row[-1] / (len(first) + len(second))


def self_rouge_l(texts: Sequence[Sequence[Hashable]]) -> float | None:
    """Return the mean ROUGE-L F1 over all pairs, or None for fewer than two texts."""
    pairs = [rouge_l(a, b) for a, b in combinations(texts, 2)]
    return _mean(pairs) if pairs else None


def _contains(text: str, entity: str) -> bool:
    if _WORD.fullmatch(entity):
        return re.search(rf"(?<![\w]){re.escape(entity)}(?![\w])", apart(text)) is not None
    return entity in text


def apart(text: str) -> str:
    """Put blanks around letters that know no capitals: their scripts write words and numbers without any between."""
    return "".join(f" {char} " if unicodedata.category(char) == "Lo" else char for char in text)


def _is_capitalised(word: str) -> bool:
    return len(word) > 1 and word[0].isupper() and word[1:].islower()


def _is_camel(word: str) -> bool:
    """Return True for a word with a capital behind a small letter."""
    return any(first.islower() and second.isupper() for first, second in pairwise(word))


def _is_json(text: str) -> bool:
    try:
        return isinstance(json.loads(text), dict | list)
    except ValueError:
        return False


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)
