"""A figure: one value per seed and arm, their median and their worst, and the target beside them.

Pure. A figure is met where the median over the seeds reaches the target in every arm it is judged in.
"""

import statistics
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any

from evals.arms import ARMS, BASE
from evals.study import Record

Series = dict[str, list[float]]  # arm -> one value per seed
Value = Callable[[Record], float | None]


@dataclass(frozen=True)
class Figure:
    """One row: a value per arm over the seeds, and what it should be."""

    name: str
    median: Mapping[str, float]
    worst: Mapping[str, float]
    seeds: Mapping[str, Sequence[float]] = field(default_factory=dict)
    target: float | None = None
    is_at_least: bool = True
    judged: tuple[str, ...] = ()  # the arms the target is for
    unit: str = "%"  # "%": shares; "points": percentage points; otherwise a count, such as "of 12"

    @classmethod
    def of(cls, found: Mapping[str, Any]) -> "Figure":
        """From what `to_json` gave."""
        known = {f.name: found[f.name] for f in fields(cls)}
        return cls(**known | {"judged": tuple(found["judged"])})

    def is_met(self, values: Mapping[str, float]) -> bool | None:
        """Return True if `values` (the medians or the worst) reach the target, or None if there is none.

        An arm that is judged and has no value (nothing it could have shown) has not reached it.
        """
        if self.target is None:
            return None
        return all(arm in values and self.reaches(values[arm]) for arm in self.judged)

    def reaches(self, value: float) -> bool:
        """Return True if one value is as good as the target."""
        assert self.target is not None
        return value >= self.target if self.is_at_least else value <= self.target

    def to_json(self) -> dict[str, Any]:
        """Plain values, for summary.json."""
        return {
            "name": self.name,
            "unit": self.unit,
            "target": self.target,
            "is_at_least": self.is_at_least,
            "judged": list(self.judged),
            "median": dict(self.median),
            "worst": dict(self.worst),
            "seeds": {arm: list(values) for arm, values in self.seeds.items()},
            "is_met": self.is_met(self.median),
            "is_met_by_worst": self.is_met(self.worst),
        }


def figure(name: str, series: Series, **fields: Any) -> Figure:
    """Return a figure from one value per seed and arm."""
    worst = min if fields.get("is_at_least", True) else max
    known = {arm: values for arm, values in series.items() if values}
    return Figure(
        name,
        {arm: statistics.median(values) for arm, values in known.items()},
        {arm: worst(values) for arm, values in known.items()},
        known,
        **fields,
    )


def per_seed(records: Iterable[Record], value: Value) -> Series:
    """Return the mean of `value` per arm and seed; records for which it is None do not count."""
    found: dict[tuple[str, int], list[float]] = defaultdict(list)
    for record in records:
        if (number := value(record)) is not None:
            found[record["arm"], record["seed"]].append(number)
    series: Series = {}
    for (arm, _), numbers in sorted(found.items(), key=lambda item: item[0][1]):
        series.setdefault(arm, []).append(statistics.fmean(numbers))
    return series


def answers_of(records: Sequence[Record], part: str, **wanted: Any) -> list[Record]:
    """Return the judged answers of a part (lessons are no answers)."""
    answers = (r for r in records if r["part"] == part and "arm" in r)
    return [r for r in answers if all(r.get(key) == value for key, value in wanted.items())]


def share(records: Iterable[Record], key: str) -> Series:
    """Return the share of the records of which `key` holds; one that does not know does not count."""
    return per_seed(records, lambda r: r.get(key))


def held_share(record: Record) -> float:
    """Return the share of its wishes that an answer follows."""
    held: dict[str, bool] = record["held"]
    return sum(held.values()) / len(held)


def points_lost(records: Sequence[Record]) -> Series:
    """Percentage points of right answers lost against the base model, per trained arm and seed."""
    right = share(records, "is_right")
    before = right.get(BASE, [])
    return {
        arm: [100.0 * (old - new) for old, new in zip(before, right[arm], strict=True)] for arm in ARMS if arm in right
    }
