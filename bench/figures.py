"""From samples to rows: median, 95th percentile, ratio, and the target beside them. Pure."""

import statistics
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

Judged = Literal["median", "p95"]


@dataclass(frozen=True)
class Row:
    """One line of the table. `p95` is None where a figure is a single number."""

    name: str
    unit: str
    median: float
    p95: float | None = None
    target: float | None = None  # an upper limit
    judged: Judged = "median"

    @property
    def is_met(self) -> bool | None:
        """True if the judged number is within the target, or None if there is none."""
        value = self.median if self.judged == "median" else self.p95
        return None if self.target is None or value is None else value <= self.target

    def to_json(self) -> dict[str, Any]:
        """Plain values, for summary.json."""
        return {**asdict(self), "is_met": self.is_met}


def p95(samples: Sequence[float]) -> float:
    """Return the 95th percentile, interpolated between the two nearest samples."""
    if len(samples) == 1:
        return samples[0]
    return statistics.quantiles(samples, n=20, method="inclusive")[-1]


def p99(samples: Sequence[float]) -> float:
    """Return the 99th percentile (of at least two samples), interpolated between the two nearest."""
    return statistics.quantiles(samples, n=100, method="inclusive")[-1]


def row(name: str, unit: str, samples: Sequence[float], target: float | None = None, judged: Judged = "median") -> Row:
    """Median and 95th percentile of the samples (at least one)."""
    return Row(name, unit, statistics.median(samples), p95(samples), target, judged)
