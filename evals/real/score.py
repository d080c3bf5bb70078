"""The figures of `heed eval real`: from its records to ratios, times and shares, and the targets beside them.

    adoption ratio = (weights - base) / (ceiling - base)

Adoption and rewritten answers share base and ceiling, asked before the lesson. Reversal counts the answers that the
first lesson had moved, and its base is that lesson's version. Invariant: a wish whose ceiling (the note in the prompt)
is below .5, or less than .25 above the base, has no ratio: the model itself cannot follow it, and nothing can be
distilled.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import mean, median
from typing import Any

from evals.journal import Record

MIN_CEILING, MIN_GAIN = 0.5, 0.25
ARMS = ("base", "note", "weights", "both")
CEILING = "ceiling"  # the part that asks what the model follows with the note in its prompt
_UNDER_CEILING = ("adoption", "rewritten")  # parts that are held against it
_EPSILON = 1e-9
_GRADES = ("right", "made up", "unknown")


@dataclass(frozen=True)
class Target:
    """A figure of the summary and what it should be; without a bound it is only told."""

    name: str
    bound: float | None
    is_at_least: bool
    value: Callable[[dict[str, Any]], float | None]

    def row(self, found: dict[str, Any]) -> dict[str, Any]:
        """Return the row of a summary; what was not measured is neither met nor missed."""
        value = self.value(found)
        is_met = None if value is None or self.bound is None else self.is_reached(value, self.bound)
        return {
            "name": self.name, "value": None if value is None else round(value, 4), "target": self.bound,
            "is_at_least": self.is_at_least, "is_met": is_met,
        }  # fmt: skip

    def is_reached(self, value: float, bound: float) -> bool:
        """Return True if a value is as good as its bound."""
        return value >= bound - _EPSILON if self.is_at_least else value <= bound + _EPSILON


def _of(*keys: str) -> Callable[[dict[str, Any]], float | None]:
    """Return a reader of one value deep in the summary, None if it was not measured."""

    def read(found: dict[str, Any]) -> float | None:
        value: Any = found
        for key in keys:
            value = value.get(key) if value else None
        return None if value is None else float(value)

    return read


TARGETS = (
    Target("adoption ratio, mean of the wishes", 0.9, True, _of("figures", "adoption", "mean")),
    Target("adoption ratio, worst wish", 0.7, True, _of("figures", "adoption", "worst")),
    Target("answers rewritten: ratio, mean", 0.9, True, _of("figures", "rewritten", "mean")),
    Target("four wishes in a row: held ratio, mean", 0.85, True, _of("figures", "retention", "mean")),
    Target("opposite correction: ratio, mean", 0.85, True, _of("figures", "reversal", "mean")),
    Target("facts right after a consolidation", 0.99, True, _of("facts", "right")),
    Target("facts made up", 0.05, False, _of("facts", "made_up")),
    Target("facts that left the prompt", None, True, _of("facts", "left_prompt")),
    Target("made up where nothing was told", None, False, _of("facts", "untold_made_up")),
    Target("neutral KL per token, median lesson", 0.03, False, _of("neutral_kl", "median")),
    Target("neutral KL per token, worst lesson", None, False, _of("neutral_kl", "worst")),
    Target("closed questions lost, points", 2.0, False, _of("closed", "points_lost")),
    Target("closed questions lost by the notes alone, points", None, False, _of("closed", "note_points_lost")),
    Target("other answers changed by remarks", 0.03, False, _of("remarks", "changed")),
    Target("lessons accepted, of wishes the model can follow", 0.95, True, _of("accepted", "followable")),
    Target("seconds of a lesson, median", 40.0, False, _of("lesson_s", "median")),
)


def ratio_of(base: float, ceiling: float, weights: float) -> float | None:
    """Return the adoption ratio, None where the model itself cannot follow the wish."""
    if ceiling < MIN_CEILING - _EPSILON or ceiling - base < MIN_GAIN - _EPSILON:
        return None
    return (weights - base) / (ceiling - base)


def summarise(records: Sequence[Record]) -> dict[str, Any]:
    """Return a row per target, one per part and wish, and the figures they come from."""
    answers = _under_ceilings(_events(records, "answer"))
    keys = dict.fromkeys((r["part"], r["wish"]) for r in answers)
    rows = [_row(part, wish, [r for r in answers if (r["part"], r["wish"]) == (part, wish)]) for part, wish in keys]
    parts = dict.fromkeys(part for part, _ in keys if part != CEILING)
    lessons = _events(records, "lesson")
    found = {
        "wishes": rows,
        "figures": {part: spread([r["ratio"] for r in rows if r["part"] == part]) for part in parts},
        "followable": _followable(rows),
        "lesson_s": spread([r["seconds"] for r in lessons], worst=max),
        "accepted": _accepted(lessons, rows),
        "neutral_kl": spread([r["nats"] for r in _events(records, "drift")], worst=max),
        "closed": _closed(_events(records, "closed")),
        "remarks": _remarks(records),
        "facts": _facts(records),
    }
    targets = [target.row(found) for target in TARGETS]
    judged = [row["is_met"] for row in targets if row["is_met"] is not None]
    return {"targets": targets, **found, "is_reached": bool(judged) and all(judged)}


def _events(records: Sequence[Record], event: str) -> list[Record]:
    return [r for r in records if r.get("event") == event]


def _under_ceilings(answers: Sequence[Record]) -> list[Record]:
    """Return the answers, with those of the ceiling also in the parts that taught the same wish in the same words."""
    ceilings = [r for r in answers if r["part"] == CEILING]
    taught = [r for r in answers if r["part"] in _UNDER_CEILING]
    units = dict.fromkeys((r["part"], r.get("seed"), r["wish"]) for r in taught)
    told = [r | {"part": part} for part, *unit in units for r in ceilings if [r["seed"], r["wish"]] == unit]
    return [*answers, *told]


def _followable(rows: Sequence[dict[str, Any]]) -> dict[str, int]:
    """Return how many wishes the model follows with the note in its prompt, of how many that were asked."""
    asked = [row for row in rows if row["part"] == CEILING]
    able = [row for row in asked if ratio_of(row["base"], row["note"], row["note"]) is not None]
    return {"wishes": len(able), "of": len(asked)}


def shares_of(answers: Sequence[Record]) -> dict[str, float | None]:
    """Return the share of answers in each arm that follow the wish; None without any."""
    return {arm: _share([r["follows"] for r in answers if r["arm"] == arm]) for arm in ARMS}


def _row(part: str, wish: str, answers: Sequence[Record]) -> dict[str, Any]:
    counted = [r for r in answers if r.get("counts", True)]
    shares = shares_of(counted)
    known = [shares[arm] for arm in ("base", "note", "weights")]
    ratio = None if None in known else ratio_of(*known)  # type: ignore[arg-type]
    asked, judged = (sum(r["arm"] == "weights" for r in found) for found in (answers, counted))
    return {"part": part, "wish": wish, **shares, "ratio": ratio, "answers": judged, "asked": asked}


def _accepted(lessons: Sequence[Record], rows: Sequence[Record]) -> dict[str, Any]:
    """Return the share of lessons that were accepted, of all and of those the model itself can follow."""
    can = {row["wish"] for row in rows if row["ratio"] is not None}
    good = [r["is_accepted"] for r in lessons if r["wish"] in can]
    return {
        "all": _share([r["is_accepted"] for r in lessons]),
        "followable": _share(good),
        "lessons": len(lessons),
        "was_asked": sum(r.get("was_asked", False) for r in lessons),  # how far the correction reaches: "from now on"
    }


def _closed(answers: Sequence[Record]) -> dict[str, Any] | None:
    """Return the shares of right answers, and the points lost: the mean over the persons, and the worst."""
    base, noted = (_share([r["is_right"] for r in answers if r["arm"] == arm]) for arm in ("base", "note"))
    seeds = sorted({r["seed"] for r in answers if r["arm"] == "weights"})
    after = [mean(r["is_right"] for r in answers if (r["arm"], r["seed"]) == ("weights", seed)) for seed in seeds]
    if base is None or not after:
        return None
    lost = [100 * (base - share) for share in after]
    found = {"base": base, "weights": mean(after), "points_lost": round(mean(lost), 2), "worst": round(max(lost), 2)}
    return found | ({} if noted is None else {"note": noted, "note_points_lost": round(100 * (base - noted), 2)})


def _remarks(records: Sequence[Record]) -> dict[str, Any] | None:
    """Return the share of other answers that changed, notes on and off, by kind, and beside it the noise."""
    asked, told = _events(records, "remarked"), _events(records, "remark")
    if not asked:
        return None
    kinds = dict.fromkeys(r["kind"] for r in asked)
    return {
        "changed": _share([r["is_changed"] for r in asked]),
        "by_notes": {way: _share([r["is_changed"] for r in asked if r["notes"] == way]) for way in ("off", "auto")},
        "by_kind": {kind: _share([r["is_changed"] for r in asked if r["kind"] == kind]) for kind in kinds},
        "trained": {kind: sum(r["is_trained"] for r in told if r["kind"] == kind) for kind in kinds},
        "noise": _share([r["is_changed"] for r in _events(records, "noise")]),
        "remarks": len(told), "answers": len(asked),
    }  # fmt: skip


def _facts(records: Sequence[Record]) -> dict[str, Any] | None:
    """Return the shares of right, made-up and unknown answers after a consolidation, and the ceiling."""
    told, untold = _events(records, "fact"), _events(records, "untold")
    after = [r for r in told if r["arm"] == "consolidated"]
    if not after:
        return None
    ceiling = [r["grade"] == "right" for r in told if r["arm"] == "note"]
    return {
        **{grade.replace(" ", "_"): _share([r["grade"] == grade for r in after]) for grade in _GRADES},
        "left_prompt": _share([r["left_prompt"] for r in after]),
        "right_of_left": _share([r["grade"] == "right" for r in after if r["left_prompt"]]),
        "note_right": _share(ceiling),
        "untold_made_up": _share([r["grade"] == "made up" for r in untold]),
        "untold_names_what_was_told": _share([bool(r["names"]) for r in untold]),
    }


def _share(values: Sequence[bool]) -> float | None:
    return mean(values) if values else None


def spread(values: Sequence[float | None], worst: Any = min) -> dict[str, Any] | None:
    """Return mean, median, worst and number of the values that are known; None without any."""
    known = [value for value in values if value is not None]
    if not known:
        return None
    found = {"mean": mean(known), "median": median(known), "worst": worst(known)}
    return {name: round(value, 4) for name, value in found.items()} | {"number": len(known), "of": len(values)}
