"""Checks of people's acts against the rows heed kept and the messages it showed. Pure."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

CURSOR = "…"


@dataclass
class History:
    """Everything a run has to answer for.

    What people did: `questions` asked, `feedback_given` (update ids), `repeats_wanted` (questions to be answered once
    more), `complaints` (questions whose answer got a thumb down, which may take a lesson back). What heed kept: `turns`
    and `repeats` (questions), `feedback` (update ids), `num_taken_back` lessons. What is `shown`: texts.
    """

    questions: list[str] = field(default_factory=list)
    feedback_given: list[str] = field(default_factory=list)
    repeats_wanted: list[str] = field(default_factory=list)
    complaints: list[str] = field(default_factory=list)
    turns: list[str] = field(default_factory=list)
    repeats: list[str] = field(default_factory=list)
    feedback: list[str] = field(default_factory=list)
    shown: list[str] = field(default_factory=list)
    num_taken_back: int = 0
    num_waiting: int = 0  # updates that are not done and things that are not shown


@dataclass(frozen=True)
class Verdict:
    """The errors, the number of checks, and the placeholders left over: allowed after an ambiguous send."""

    lost: tuple[str, ...]
    doubled: tuple[str, ...]
    num_placeholders: int
    num_acts: int

    @property
    def is_right(self) -> bool:
        """Nothing lost, nothing twice."""
        return not self.lost and not self.doubled


def check(history: History) -> Verdict:
    """Compare what was done with what came of it."""
    answers = [about(text) for text in history.shown if not text.rstrip().endswith(CURSOR)]
    as_before = answered_as_before(history)
    repeats_wanted = [*history.repeats_wanted, *as_before]
    expected_shown = [*history.questions, *repeats_wanted]
    lost: list[str] = []
    doubled: list[str] = []
    for name, wanted, found in (
        ("turn", history.questions, history.turns),
        ("repeat", repeats_wanted, history.repeats),
        ("feedback", history.feedback_given, history.feedback),
        ("shown answer", expected_shown, [text for text in answers if text]),
    ):
        fewer, more = differences(wanted, found)
        lost += [f"{name}: {text}" for text in fewer]
        doubled += [f"{name}: {text}" for text in more]
    if history.num_waiting:
        lost.append(f"{history.num_waiting} things still wait")
    placeholders = sum(text.rstrip().endswith(CURSOR) for text in history.shown)
    if (missing := history.num_taken_back - len(as_before)) > 0:
        lost.append(f"{missing} answers after lessons that were taken back")
    num_acts = len(history.questions) + len(history.repeats_wanted) + len(history.feedback_given)
    return Verdict(tuple(lost), tuple(doubled), placeholders, num_acts)


def answered_as_before(history: History) -> list[str]:
    """Questions answered once more because a thumb down took a lesson back: one for each such lesson, no more."""
    _, more = differences(history.repeats_wanted, history.repeats)
    found = sorted((Counter(more) & Counter(history.complaints)).elements())
    return found[: history.num_taken_back]


def differences(wanted: Iterable[str], found: Iterable[str]) -> tuple[list[str], list[str]]:
    """Return the missing and the unexpected items, each as often as it occurs."""
    missing, extra = Counter(wanted), Counter(found)
    both = missing & extra
    return sorted((missing - both).elements()), sorted((extra - both).elements())


def about(text: str) -> str:
    """The question an answer of the fake engine is about; empty for anything else."""
    _, found, rest = text.partition("You asked about ")
    return rest.partition(".")[0] if found else ""
