"""From records to figures: shares per seed, their median and their worst, and the target beside them.

Pure: the same records give the same figures, so a summary can be made again from steps.jsonl. A figure is met where
the median over the seeds reaches the target in every arm it is judged in; the worst seed stands beside it.
"""

import statistics
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from evals import long_score
from evals.arms import ARMS, BASE, BOTH, NOTES, WEIGHTS
from evals.figure import Figure, Series, answers_of, figure, held_share, per_seed, points_lost, share
from evals.study import Record

ABSENT_SKILLS = ("opposite", "bigger")  # families that no anchor and no prompt of the bank belongs to
ADOPTED_SHARE = 0.95
LEAST_SHARE = 0.80


def figures(records: Sequence[Record], parts: Iterable[str]) -> list[Figure]:
    """Every row of the table, for the parts that were measured."""
    makers = {
        "teacher": _teacher,
        "notes": _notes,
        "adoption": _adoption,
        "collateral": _collateral,
        "retention": _retention,
        "skills": _skills,
        "reversal": _reversal,
        **long_score.MAKERS,
    }
    return [row for part in makers if part in parts for row in makers[part](records)]


def _teacher(records: Sequence[Record]) -> list[Figure]:
    told = answers_of(records, "teacher")
    limit: dict[str, Any] = {"target": 0.97, "judged": (BASE,)}
    return [
        figure(f"feedback in context, {way}", share(answers_of(told, "teacher", way=way), "holds"), **limit)
        for way in dict.fromkeys(r["way"] for r in told)
    ]


def _notes(records: Sequence[Record]) -> list[Figure]:
    return [
        figure("note: the very next answer", share(answers_of(records, "notes"), "holds"), target=0.97, judged=(NOTES,))
    ]  # fmt: skip


def _adoption(records: Sequence[Record]) -> list[Figure]:
    rows = []
    for history in _histories(records):
        told = f"one correction, {history} earlier messages"
        each = list(_each(answers_of(records, "adoption", history=history), "holds").values())
        wanted = min(10, len(each))
        rows += [
            figure(f"{told}: mean", share(answers_of(records, "adoption", history=history), "holds")),
            _count(f"{told}: preferences at 95 %", each, target=wanted, judged=(WEIGHTS,), unit=f"of {len(each)}"),
            _least(f"{told}: the worst preference", each, target=LEAST_SHARE, judged=(WEIGHTS,)),
        ]
    return rows


def _count(name: str, each: Sequence[Figure], **fields: Any) -> Figure:
    """How many preferences reach ADOPTED_SHARE: by their median seed, and by their worst."""
    return Figure(
        name,
        {arm: float(sum(row.median[arm] >= ADOPTED_SHARE for row in each)) for arm in ARMS},
        {arm: float(sum(row.worst[arm] >= ADOPTED_SHARE for row in each)) for arm in ARMS},
        **fields,
    )


def _least(name: str, each: Sequence[Figure], **fields: Any) -> Figure:
    """Return the preference that does worst: by its median seed, and by its worst."""
    return Figure(
        name,
        {arm: min(row.median[arm] for row in each) for arm in ARMS},
        {arm: min(row.worst[arm] for row in each) for arm in ARMS},
        **fields,
    )


def _collateral(records: Sequence[Record]) -> list[Figure]:
    asked = answers_of(records, "adoption")
    limit = {"target": 0.03, "is_at_least": False, "judged": (WEIGHTS,)}
    return [
        figure("other preferences changed", _changed(asked), **limit),
        figure("facts lost", share(asked, "facts_lost"), **limit),
        figure("answers with any of both", per_seed(asked, _is_harmed), is_at_least=False),
    ]


def _retention(records: Sequence[Record]) -> list[Figure]:
    kept, taught = answers_of(records, "retention"), answers_of(records, "adopted")
    return [
        figure("six in a row: each when new", per_seed(taught, lambda r: r["share"])),
        figure("six in a row: held at the end", per_seed(kept, held_share), target=0.95, judged=(WEIGHTS,)),
        figure("six in a row: the worst of them", _worst_held(kept)),
        figure("six in a row: all in one answer", per_seed(kept, lambda r: held_share(r) == 1.0)),
        figure("six in a row: others changed", _changed(kept), is_at_least=False),
        figure("six in a row: facts lost", share(kept, "facts_lost"), is_at_least=False),
    ]


def _skills(records: Sequence[Record]) -> list[Figure]:
    asked = answers_of(records, "skills")
    absent = [r for r in asked if r["skill"] in ABSENT_SKILLS]
    limit = {"target": 2.0, "is_at_least": False, "judged": (WEIGHTS,), "unit": "points"}
    return [
        figure("skills: right before and after", share(asked, "is_right")),
        figure("skills: lost", points_lost(asked), **limit),
        figure("skills: lost, families never rehearsed", points_lost(absent), **limit),
    ]


def skills_by_family(records: Sequence[Record]) -> list[Figure]:
    """Right answers per family of skills."""
    asked = answers_of(records, "skills")
    return [
        figure(skill, share(answers_of(asked, "skills", skill=skill), "is_right"))
        for skill in dict.fromkeys(r["skill"] for r in asked)
    ]


def _reversal(records: Sequence[Record]) -> list[Figure]:
    asked = answers_of(records, "reversal")
    return [
        figure("opposite correction: the first had worked", share(asked, "was_away")),
        figure("opposite correction: back", per_seed(asked, is_back), target=0.95, judged=(WEIGHTS, BOTH)),
    ]


@dataclass(frozen=True)
class Column:
    """One way the preferences were measured one by one, in one arm."""

    title: str
    arm: str
    rows: Mapping[str, Figure]  # by preference

    def to_json(self) -> dict[str, Any]:
        """Plain values, for summary.json."""
        found = {p: row for p, row in self.rows.items() if self.arm in row.median}
        values = {p: {"median": row.median[self.arm], "worst": row.worst[self.arm]} for p, row in found.items()}
        return {"title": self.title, "arm": self.arm, "preferences": values}


def columns(records: Sequence[Record]) -> list[Column]:
    """Each preference by itself, in every way it was measured."""
    adopted = [
        Column(
            f"one correction, {history} earlier",
            WEIGHTS,
            _each(answers_of(records, "adoption", history=history), "holds"),
        )
        for history in _histories(records)
    ]
    found = [
        Column("in context", BASE, _each(answers_of(records, "teacher"), "holds")),
        Column("note", NOTES, _each(answers_of(records, "notes"), "holds")),
        *adopted,
        Column("facts lost", WEIGHTS, _each(answers_of(records, "adoption"), "facts_lost", is_at_least=False)),
        Column("one of six, at the end", WEIGHTS, _each_held(answers_of(records, "retention"))),
        Column("opposite correction", WEIGHTS, _each_back(answers_of(records, "reversal"))),
    ]
    return [column for column in found if column.rows]


def _each(records: Sequence[Record], key: str, **fields: Any) -> dict[str, Figure]:
    names = _preferences(records)
    return {p: figure(p, share([r for r in records if r["preference"] == p], key), **fields) for p in names}


def _each_held(records: Sequence[Record]) -> dict[str, Figure]:
    names = dict.fromkeys(p for r in records for p in r["held"])
    return {p: figure(p, per_seed(records, lambda r, p=p: r["held"].get(p))) for p in names}  # type: ignore[misc]


def _each_back(records: Sequence[Record]) -> dict[str, Figure]:
    names = _preferences(records)
    return {p: figure(p, per_seed([r for r in records if r["preference"] == p], is_back)) for p in names}


def lessons(records: Sequence[Record]) -> dict[str, Any]:
    """Return the corrections by status, how many never settled, and the median seconds."""
    given = [r for r in records if r.get("event") == "lesson"]
    by_status: dict[str, int] = defaultdict(int)
    for lesson in given:
        by_status[lesson["status"]] += 1
    return {
        "corrections": len(given),
        "status": dict(by_status),
        "unsettled": sum(not lesson["is_settled"] for lesson in given),
        "median_s": statistics.median(lesson["seconds"] for lesson in given) if given else None,
    }


def is_back(record: Record) -> float | None:
    """Return 1 if an answer follows the opposite correction now, 0 if not, None if it had not followed the first."""
    return float(record["is_back"]) if record.get("was_away") else None


def _changed(records: Sequence[Record]) -> Series:
    """Of all (answer, other preference), the share whose state is another one."""
    return per_seed(records, lambda r: len(r["changed"]) / r["compared"] if r.get("compared") else None)


def _is_harmed(record: Record) -> float | None:
    return float(bool(record["changed"]) or bool(record["facts_lost"])) if "changed" in record else None


def _worst_held(records: Sequence[Record]) -> Series:
    """Per arm and seed the preference that held least."""
    names = dict.fromkeys(p for r in records for p in r["held"])
    by_preference: dict[tuple[str, int], list[float]] = defaultdict(list)
    for name in names:
        for arm, seed, held in _shares(records, name):
            by_preference[arm, seed].append(held)
    series: Series = {}
    for (arm, _), shares in sorted(by_preference.items(), key=lambda item: item[0][1]):
        series.setdefault(arm, []).append(min(shares))
    return series


def _shares(records: Sequence[Record], preference: str) -> Iterable[tuple[str, int, float]]:
    found: dict[tuple[str, int], list[float]] = defaultdict(list)
    for record in records:
        if preference in record["held"]:
            found[record["arm"], record["seed"]].append(record["held"][preference])
    return [(arm, seed, statistics.fmean(values)) for (arm, seed), values in found.items()]


def _histories(records: Sequence[Record]) -> list[int]:
    return sorted({r["history"] for r in answers_of(records, "adoption")})


def _preferences(records: Sequence[Record]) -> list[str]:
    return list(dict.fromkeys(r["preference"] for r in records))
