"""The pictures of an evaluation: from its records to what is drawn. A picture with nothing to show is left out."""

import statistics
from collections import defaultdict
from collections.abc import Iterable, Sequence

from engine.config import GateConfig
from engine.pocket.style import PREFERENCES
from evals import picture, score
from evals.arms import WEIGHTS
from evals.figure import answers_of
from evals.journal import Record
from evals.picture import Change, Panel, Value
from evals.report import Picture

HELD_PARTS = ("retention", "lasting", "endurance", "silence")  # that say of every answer which wishes it follows


def of(records: Sequence[Record]) -> list[Picture]:
    """Every picture that the records give."""
    drawn = (margins(records), learning(records), collapse(records), forgetting(records), held(records), waits(records))
    return [one for one in drawn if one is not None]


def margins(records: Sequence[Record]) -> Picture | None:
    """How far each lesson moved the corrected answer."""
    groups = {}
    for part, lessons in _lessons(records).items():
        known = [lesson for lesson in lessons if _figure(lesson, "margin_after") is not None]
        moved = [Change(_number(r, "margin_before"), _number(r, "margin_after"), _is_accepted(r)) for r in known]
        if moved:
            groups[part] = moved
    if not groups:
        return None
    caption = (
        "Of every correction, on the answer it was about: by how much the teacher's token is likelier than the token "
        "that was there, before and after. Above zero the answer would be written anew."
    )
    png = picture.changes(groups, "log-probability margin", "nats per token")
    return Picture("margins.png", "Margins", caption, png)


def learning(records: Sequence[Record]) -> Picture | None:
    """How far from its teacher the student was before and after each lesson."""
    panels = []
    for part, lessons in _lessons(records).items():
        series = {
            "before": [_figure(lesson, "divergence_before") for lesson in lessons],
            "after": [_figure(lesson, "divergence_after") for lesson in lessons],
        }
        if any(value is not None for value in series["after"]):
            panels.append(Panel(f"what is left to learn: {part}", "nats per token", series, is_logarithmic=True))
    if (together := _together(records)) is not None:
        panels.append(together)
    if not panels:
        return None
    caption = "The divergence of teacher and student that each lesson found and left, in the order of the lessons."
    return Picture("learning.png", "Learning curves", caption, picture.curves(panels))


def _together(records: Sequence[Record]) -> Panel | None:
    """Return the share of all wishes so far that holds after each of several lessons, and the newest alone."""
    held = _so_far(records)
    if not held:
        return None
    newest = [statistics.fmean(row[-1] for row in held[place]) for place in sorted(held)]
    everything = [statistics.fmean(v for row in held[place] for v in row) for place in sorted(held)]
    series = {"the newest wish": newest, "all so far": everything}
    return Panel("held by the weights alone, of six wishes in a row", "share", series, 0.95, is_at_least=True)


def collapse(records: Sequence[Record]) -> Picture | None:
    """Return the three figures that would show a collapse, beside the bounds of the gates."""
    gate = GateConfig()
    bounds = (
        ("entropy_ratio", "entropy, against the teacher's", "ratio", gate.min_entropy_ratio, True),
        ("self_rouge", "likeness of answers to different prompts", "ROUGE-L", gate.max_self_rouge, False),
        ("drift", "drift on the base model's answers", "nats per token", gate.max_drift, False),
    )
    found = _lessons(records)
    panels = []
    for name, title, unit, limit, is_at_least in bounds:
        series = {part: [_figure(lesson, name) for lesson in lessons] for part, lessons in found.items()}
        series = {part: values for part, values in series.items() if any(v is not None for v in values)}
        if series:
            panels.append(Panel(title, unit, series, limit, is_at_least))
    caption = "Of every candidate, accepted or not: what the gates watch to see a collapse coming, and their bounds."
    return Picture("collapse.png", "Collapse", caption, picture.curves(panels)) if panels else None


def forgetting(records: Sequence[Record]) -> Picture | None:
    """After each of several lessons, how much of each one so far holds."""
    held = _so_far(records)
    if not held:
        return None
    places = sorted(held)
    values: list[list[Value]] = []
    for place in places:
        means: list[Value] = [statistics.fmean(column) for column in zip(*held[place], strict=True)]
        values.append(means + [None] * (len(places) - len(means)))
    rows, columns = [f"after lesson {p + 1}" for p in places], [f"wish {p + 1}" for p in places]
    png = picture.heat(rows, columns, values, "share of answers that follow each wish, per cent")
    caption = (
        "Several corrections in a row, weights alone, the mean over people: what each lesson left of those before it."
    )
    return Picture("retention.png", "Retention", caption, png)


def held(records: Sequence[Record]) -> Picture | None:
    """Each preference in every way it was measured."""
    ways: dict[str, dict[str, float]] = {}
    for column in score.columns(records):
        if column.title != "facts lost":
            ways[column.title] = {
                p: row.median[column.arm] for p, row in column.rows.items() if column.arm in row.median
            }
    for part in HELD_PARTS[1:]:
        if found := _held_in(answers_of(records, part, arm=WEIGHTS)):
            ways[f"{part}, at the end"] = found
    rows = [p for p in PREFERENCES if any(p in shares for shares in ways.values())]
    if not rows:
        return None
    titles = [_broken(way) for way in ways]
    png = picture.heat(rows, titles, [[shares.get(p) for shares in ways.values()] for p in rows], "per cent")
    return Picture(
        "preferences.png", "Each preference", "The share of answers that follow a wish, median of seeds.", png
    )


def waits(records: Sequence[Record]) -> Picture | None:
    """How long the next answer took to begin after each refused lesson."""
    found = [r["first_token_s"] for r in records if r.get("event") == "next answer"]
    if not found:
        return None
    panel = Panel("first token after a refused lesson", "seconds", {"": found}, 1.0, counted="refused lesson")
    caption = "An update that fails its gate must leave chat working at once."
    return Picture("first_token.png", "Chat after a refused lesson", caption, picture.curves([panel]))


def _lessons(records: Iterable[Record]) -> dict[str, list[Record]]:
    """Return the corrections of each part, in their order."""
    found: dict[str, list[Record]] = defaultdict(list)
    for record in records:
        if record.get("event") == "lesson":
            found[record["part"]].append(record)
    return dict(found)


def _figure(lesson: Record, name: str) -> Value:
    gate = lesson.get("update", {}).get("gate") or {}
    value: Value = (gate.get("figures") or {}).get(name)
    return value


def _number(lesson: Record, name: str) -> float:
    return _figure(lesson, name) or 0.0


def _is_accepted(lesson: Record) -> bool:
    return bool(lesson["update"]["gate"]["accepted"])


def _so_far(records: Sequence[Record]) -> dict[int, list[list[float]]]:
    """After lesson -> of every person, the shares that each wish so far was followed in."""
    found: dict[int, list[list[float]]] = defaultdict(list)
    for record in answers_of(records, "adopted"):
        if "held_so_far" in record:
            found[record["lesson"]].append(record["held_so_far"])
    return found


def _held_in(records: Sequence[Record]) -> dict[str, float]:
    shares: dict[str, list[float]] = defaultdict(list)
    for record in records:
        for preference, is_held in record.get("held", {}).items():
            shares[preference].append(float(is_held))
    return {preference: statistics.fmean(values) for preference, values in shares.items()}


def _broken(title: str) -> str:
    """Return a title over several lines, for a narrow column."""
    return title.replace(", ", ",\n").replace(" correction", "\ncorrection")
