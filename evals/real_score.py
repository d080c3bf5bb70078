"""The figures of `heed eval real`: from its records to ratios, times and shares.

    adoption ratio = (weights - base) / (ceiling - base)

Invariant: a wish whose ceiling (the note in the prompt) is below .5, or less than .25 above the base, has no ratio:
the model itself cannot follow it, and nothing can be distilled.
"""

from collections.abc import Sequence
from statistics import mean, median
from typing import Any

from evals.journal import Record

MIN_CEILING, MIN_GAIN = 0.5, 0.25
ARMS = ("base", "note", "weights", "both")
TARGET_MEAN, TARGET_WORST = 0.9, 0.7
_EPSILON = 1e-9


def ratio_of(base: float, ceiling: float, weights: float) -> float | None:
    """Return the adoption ratio, None where the model itself cannot follow the wish."""
    if ceiling < MIN_CEILING - _EPSILON or ceiling - base < MIN_GAIN - _EPSILON:
        return None
    return (weights - base) / (ceiling - base)


def summarise(records: Sequence[Record]) -> dict[str, Any]:
    """Return one row per part and wish, and the figures over them: mean, median and worst."""
    answers = [r for r in records if r.get("event") == "answer"]
    keys = dict.fromkeys((r["part"], r["wish"]) for r in answers)
    rows = [_row(part, wish, [r for r in answers if (r["part"], r["wish"]) == (part, wish)]) for part, wish in keys]
    figures = {
        part: spread([r["ratio"] for r in rows if r["part"] == part]) for part in dict.fromkeys(p for p, _ in keys)
    }
    adopted = figures.get("adoption") or {}
    lessons = [r for r in records if r.get("event") == "lesson"]
    drift = [r["nats"] for r in records if r.get("event") == "drift"]
    return {
        "wishes": rows,
        "figures": figures,
        "lesson_s": spread([r["seconds"] for r in lessons], worst=max),
        "accepted": _accepted(lessons, rows),
        "neutral_nats_lost_per_token": spread(drift, worst=max),
        "is_reached": bool(adopted) and adopted["mean"] >= TARGET_MEAN and adopted["worst"] >= TARGET_WORST,
    }


def _row(part: str, wish: str, answers: Sequence[Record]) -> dict[str, Any]:
    by_arm = {arm: [r["follows"] for r in answers if r["arm"] == arm] for arm in ARMS}
    shares = {arm: mean(found) if found else None for arm, found in by_arm.items()}
    known = [shares[arm] for arm in ("base", "note", "weights")]
    ratio = None if None in known else ratio_of(*known)  # type: ignore[arg-type]
    return {"part": part, "wish": wish, **shares, "ratio": ratio, "answers": len(by_arm["weights"])}


def _accepted(lessons: Sequence[Record], rows: Sequence[Record]) -> dict[str, Any]:
    """Return the share of lessons that were accepted, of all and of those the model itself can follow."""
    can = {row["wish"] for row in rows if row["ratio"] is not None}
    good = [r["is_accepted"] for r in lessons if r["wish"] in can]
    everything = [r["is_accepted"] for r in lessons]
    return {"all": mean(everything) if everything else None, "followable": mean(good) if good else None}


def spread(values: Sequence[float | None], worst: Any = min) -> dict[str, Any] | None:
    """Return mean, median, worst and number of the values that are known; None without any."""
    known = [value for value in values if value is not None]
    if not known:
        return None
    found = {"mean": mean(known), "median": median(known), "worst": worst(known)}
    return {name: round(value, 4) for name, value in found.items()} | {"number": len(known), "of": len(values)}
