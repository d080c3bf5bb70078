"""The verdict on one answer: which wishes it follows, what else changed, and if it still carries its facts.

Pure; reads texts with the pocket world's verifiers, which know nothing of how the answer was made.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from engine.pocket.style import DEFAULT, PREFERENCES, has_facts, observe
from engine.pocket.wishes import apply
from evals.cases import Exercise, Question, Wish
from evals.wish_checks import is_degenerate

MIN_WORDS = 2  # different ones; no answer of the pocket world has fewer
_WORD = re.compile(r"\w+")
_EDGES = re.compile(r"^\W+|\W+$")


@dataclass(frozen=True)
class AnswerVerdict:
    """The answer after a correction, beside the answer to the same question before it."""

    held: dict[str, bool]  # wished preference -> whether the answer follows it
    changed: tuple[str, ...]  # other preferences whose state is no longer what it was
    compared: int  # other preferences whose state showed before
    facts_lost: bool | None  # None where the answer before did not carry them either


def follows(text: str, wish: Wish) -> bool:
    """Return True if the text is as the wish wants it; a degenerate one, or one of a single word, follows nothing."""
    if is_degenerate(text) or len(set(_WORD.findall(text.lower()))) < MIN_WORDS:
        return False
    return observe(text, wish.name)[wish.preference] == wish.wanted


def judge(question: Question, before: str, after: str, wishes: Sequence[Wish]) -> AnswerVerdict:
    """Return the verdict on an answer after `wishes`. What does not show any more has changed, too.

    The preference "name" is not among the others: without a name to look for, no text shows it.
    """
    wished = {w.preference for w in wishes}
    name = next((w.name for w in wishes if w.preference == "name"), "")
    seen, now = observe(before, name), observe(after, name)
    others = [p for p in PREFERENCES if p not in {*wished, "name"} and seen[p] is not None]
    return AnswerVerdict(
        held={w.preference: follows(after, w) for w in wishes},
        changed=tuple(p for p in others if now[p] != seen[p]),
        compared=len(others),
        facts_lost=_facts_lost(question, before, after, wishes),
    )


def _facts_lost(question: Question, before: str, after: str, wishes: Sequence[Wish]) -> bool | None:
    if not has_facts(before, question.content, DEFAULT):
        return None
    style = DEFAULT
    for wish in wishes:
        style = apply(style, [wish.direction], wish.name)
    return not has_facts(after, question.content, style)


def is_right(text: str, exercise: Exercise) -> bool:
    """Return True if the answer is the expected one alone; capitals, quotes and final punctuation are free."""
    return _EDGES.sub("", text).casefold() == exercise.expected.casefold()
