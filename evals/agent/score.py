"""The figures of `heed eval agent`: shares by seed, their median and their worst, beside their targets.

Pure.
"""

import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from evals.journal import Record

LATER = "later tasks obey, weights alone"
TARGETS: dict[str, float] = {
    "tasks solved": 0.90,
    "the retry obeys, weights alone": 0.95,
    LATER: 0.90,
    "six wishes held": 0.90,
    "an edit's arguments on similar tasks": 0.90,
    "turns done of a session of a hundred": 0.90,
}
MOST_LOST, MOST_SECONDS = 0.02, 1.5


@dataclass(frozen=True)
class AgentFigure:
    """One row of a rule: a value for each seed."""

    name: str
    values: tuple[float, ...]
    unit: str = "%"
    target: float | None = None
    is_at_least: bool = True

    @property
    def median(self) -> float | None:
        """The median over the seeds; None where nothing was measured."""
        return statistics.median(self.values) if self.values else None

    @property
    def worst(self) -> float | None:
        """The seed that is worst."""
        return (min if self.is_at_least else max)(self.values) if self.values else None

    @property
    def is_met(self) -> bool | None:
        """True if the median reaches the target, None where there is none."""
        if self.target is None or self.median is None:
            return None
        return self.median >= self.target if self.is_at_least else self.median <= self.target

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        return {
            "name": self.name, "unit": self.unit, "target": self.target, "median": self.median, "worst": self.worst,
            "seeds": list(self.values), "is_met": self.is_met,
        }  # fmt: skip


def figures(records: Sequence[Record]) -> list[AgentFigure]:
    """Return the figures of one rule's records."""
    share = [
        ("tasks solved", "tasks", "is_done"),
        ("the retry obeys, weights alone", "correction", "retry_obeys"),
        (LATER, "correction", "obeys"),
        ("later tasks solved", "correction", "is_done"),
        ("six wishes held", "sequence", "obeys"),
        ("an edit's arguments on similar tasks", "edit", "obeys"),
        ("turns done of a session of a hundred", "long", "is_done"),
    ]
    rows = [
        AgentFigure(name, tuple(_by_seed(records, part, key, statistics.mean)), target=TARGETS.get(name))
        for name, part, key in share
    ]
    before, after = (_by_seed(records, part, "is_done", statistics.mean) for part in ("tasks", "lessons"))
    lost = tuple(one - other for one, other in zip(before, after, strict=False))
    seconds = tuple(_by_seed(records, "correction", "retry_s", statistics.median))
    return [
        *rows,
        AgentFigure("tasks lost after ten lessons", lost, target=MOST_LOST, is_at_least=False),
        AgentFigure("denial to the retry's call", seconds, "s", MOST_SECONDS, is_at_least=False),
        AgentFigure("lessons learned", tuple(_by_seed(records, "correction", "lesson", _learned))),
    ]


def _learned(statuses: Sequence[str]) -> float:
    return statistics.mean(status == "learned" for status in statuses)


def _by_seed(records: Sequence[Record], part: str, key: str, told: Callable[[Any], float]) -> list[float]:
    mine = [record for record in records if record["part"] == part and key in record]
    seeds = sorted({record["seed"] for record in mine})
    return [told([record[key] for record in mine if record["seed"] == seed]) for seed in seeds]
