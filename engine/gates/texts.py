"""Gates on whole texts, for consolidations: entities kept, entities invented, form kept; and how alike answers are.

Pure. No function generates a text. The definitions are those of the earlier
systems: entity preservation (EPR), fabrication (FR) and compliance with the expected form (SC) of mnemonic,
self-ROUGE-L of CLaaS; here a gold answer takes the place of mnemonic's raw input, and its form that of the schema.
"""

import json
import re
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from itertools import combinations

from engine.config import GateConfig

_ENTITY = re.compile(
    r"@\w+"  # mentions
    r"|(?:/[\w.-]+){2,}"  # paths
    r"|\bv?\d+(?:[.,:]\d+)*\b"  # numbers, times and versions
    r"|\b[A-Z]?[a-z]+(?:[A-Z][a-z0-9]+)+\b"  # CamelCase
    r"|(?<=[a-z,;:] )[A-Z][a-z]+\b"  # proper nouns: capitals within a sentence
)
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

    @property
    def is_accepted(self) -> bool:
        """Return True if all three checks pass."""
        return all(self.checks.values())


def entities(text: str) -> set[str]:
    """Return the numbers, versions, paths, mentions, CamelCase and proper nouns of a text, in lower case."""
    return {found.lower() for found in _ENTITY.findall(text)}


def preserved_share(gold: str, text: str) -> float:
    """Return EPR = #{entities of the gold answer in the text} / #{entities of the gold answer}; 1 without any.

    A number must stand by itself: the 4 of "14" is not kept.
    """
    wanted = entities(gold)
    return sum(_contains(text.lower(), entity) for entity in wanted) / len(wanted) if wanted else 1.0


def fabricated_share(gold: str, text: str) -> float:
    """Return FR = #{entities of the text that are not in the gold answer} / #{entities of the text}; 0 without any.

    A word counts as contained in any capitals: mnemonic's own measure took a sentence's first word for an invention.
    """
    found = entities(text)
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
    return TextVerdict(preserved, fabricated, compliant, checks)


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
        return re.search(rf"(?<![\w]){re.escape(entity)}(?![\w])", text) is not None
    return entity in text


def _is_json(text: str) -> bool:
    try:
        return isinstance(json.loads(text), dict | list)
    except ValueError:
        return False


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)
