"""The figures of `heed eval agent`: a row each, with a column for every rule of learning, beside their targets.

Pure. Targets are for heed's own rule.
"""

import statistics
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from evals.figure import Figure, Series, figure
from evals.journal import Record
from evals.rules import RULES

LATER = "later tasks obey, weights alone"
_SHARES = (  # name, part, what holds or not, the target
    ("tasks solved", "tasks", "is_done", 0.90),
    ("the retry obeys, weights alone", "correction", "retry_obeys", 0.95),
    (LATER, "correction", "obeys", 0.90),
    ("later tasks solved", "correction", "is_done", None),
    ("six wishes held", "sequence", "obeys", 0.90),
    ("an edit's arguments on similar tasks", "edit", "obeys", 0.90),
    ("turns done of a session of a hundred", "long", "is_done", 0.90),
)
_MOST_LOST, _MOST_SECONDS = 0.02, 1.5

Told = Callable[[Any], float]
Records = Sequence[Record]


def figures(records: Mapping[str, Records], parts: Sequence[str]) -> list[Figure]:
    """Return the figures of each rule's records, those of `parts` only; seeds in order."""
    judged = tuple(rule for rule in records if RULES[rule].is_heeds)

    def row(name: str, found: Callable[[Records], list[float]], target: float | None = None, **told: Any) -> Figure:
        series: Series = {rule: found(mine) for rule, mine in records.items()}
        return figure(name, series, target=target, judged=judged, **told)

    rows = [row(name, _share(part, key), target) for name, part, key, target in _SHARES if part in parts]
    if "long" in parts:
        refused = _share("long", "is_refused")
        rows.append(row("turns refused of a session of a hundred", refused, 0.0, is_at_least=False))
    if {"tasks", "lessons"} <= {*parts}:
        rows.append(row("tasks lost after ten lessons", _lost, _MOST_LOST, is_at_least=False))
    if "correction" in parts:
        rows.append(row("denial to the retry's call", _seconds, _MOST_SECONDS, is_at_least=False, unit="s"))
        rows.append(row("lessons learned", lambda mine: _by_seed(mine, "correction", "lesson", _learned)))
    return rows


def adopted(records: Records) -> float:
    """Return the share of later tasks that obey, 0 if none was tried."""
    return statistics.median(_share("correction", "obeys")(records) or [0.0])


def _share(part: str, key: str) -> Callable[[Records], list[float]]:
    return lambda records: _by_seed(records, part, key, statistics.mean)


def _lost(records: Records) -> list[float]:
    before, after = (_share(part, "is_done")(records) for part in ("tasks", "lessons"))
    return [one - other for one, other in zip(before, after, strict=False)]


def _seconds(records: Records) -> list[float]:
    return _by_seed(records, "correction", "retry_s", statistics.median)


def _learned(statuses: Sequence[str]) -> float:
    return statistics.mean(status == "learned" for status in statuses)


def _by_seed(records: Records, part: str, key: str, told: Told) -> list[float]:
    mine = [record for record in records if record["part"] == part and key in record]
    seeds = sorted({record["seed"] for record in mine})
    return [told([record[key] for record in mine if record["seed"] == seed]) for seed in seeds]
