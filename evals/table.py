"""The tables a person reads: figures beside their targets, and the preferences one by one."""

from collections.abc import Mapping, Sequence
from typing import Any

from rich.table import Table
from rich.text import Text

from evals import score
from evals.arms import ARMS, BASE
from evals.figure import Figure
from evals.score import Column
from evals.study import Record

COLUMNS = {BASE: "no adapter", "notes": "notes only", "weights": "weights only", "both": "both"}
NO_VALUE = "-"
_DIGITS = {"points": 1, "s": 2, "ratio": 2, "nats": 3}


def number(value: float | None, unit: str) -> str:
    """One value as it is printed."""
    if value is None:
        return NO_VALUE
    if unit == "%":
        return f"{100 * value:.1f}"
    return f"{value:.{_DIGITS.get(unit, 0)}f}"


def with_worst(row: Figure, arm: str) -> str:
    """Return an arm's median with its worst seed."""
    if arm not in row.median:
        return NO_VALUE
    return f"{number(row.median[arm], row.unit)} ({number(row.worst[arm], row.unit)})"


def target(row: Figure) -> str:
    """Return the target as it is printed."""
    if row.target is None:
        return ""
    sign = ">=" if row.is_at_least else "<="
    shown = f"{100 * row.target:.0f} %" if row.unit == "%" else f"{row.target:g} {row.unit}"
    return f"{sign} {shown}"


def cell(row: Figure, arm: str) -> Text:
    """Median and worst seed; red where the arm is judged and the median misses."""
    if arm not in row.median:
        return Text(NO_VALUE, style="dim")
    text = Text(number(row.median[arm], row.unit))
    text.append(f" ({number(row.worst[arm], row.unit)})", style="dim")
    if row.target is not None and arm in row.judged:
        style = "green" if row.reaches(row.median[arm]) else "bold red"
        text.stylize(style, 0, text.plain.index(" ("))
    return text


def verdict(row: Figure) -> Text:
    """Return the last column: reached by the median seed, by the worst one, or missed."""
    is_met = row.is_met(row.median)
    if is_met is None:
        return Text("")
    if not is_met:
        return Text("missed", style="bold red")
    return Text("yes", style="green") if row.is_met(row.worst) else Text("yes, worst no", style="yellow")


def figures(rows: Sequence[Figure], seeds: int) -> Table:
    """Return the figures of the evaluation."""
    table = Table(title=f"What heed learns: per cent, median of {seeds} seeds (worst seed)", title_justify="left")
    table.add_column("figure", no_wrap=True)
    table.add_column("target", no_wrap=True)
    for arm in (BASE, *ARMS):
        table.add_column(COLUMNS[arm], justify="right", no_wrap=True)
    table.add_column("reached")
    for row in rows:
        table.add_row(row.name, target(row), *(cell(row, arm) for arm in (BASE, *ARMS)), verdict(row))
    return table


def every(seeds: int, records: Sequence[Record], rows: Sequence[Figure]) -> list[Table]:
    """All tables of an evaluation that have anything in them."""
    more = (preferences(score.columns(records)), skills(records))
    return [figures(rows, seeds), *(table for table in more if table is not None)]


def preferences(columns: Sequence[Column]) -> Table | None:
    """One row per preference, one column per way it was measured; None where none was."""
    if not columns:
        return None
    table = Table(title="Each preference, per cent: median (worst seed)", title_justify="left")
    table.add_column("preference", no_wrap=True)
    for column in columns:
        table.add_column(f"{column.title}\n({COLUMNS[column.arm]})", justify="right", no_wrap=True)
    for preference in dict.fromkeys(p for column in columns for p in column.rows):
        table.add_row(preference, *(_cell_of(column, preference) for column in columns))
    return table


def _cell_of(column: Column, preference: str) -> Text:
    row = column.rows.get(preference)
    return cell(row, column.arm) if row else Text(NO_VALUE, style="dim")


def skills(records: Sequence[Record]) -> Table | None:
    """Right answers per family of skills; None where they were not measured."""
    rows = score.skills_by_family(records)
    if not rows:
        return None
    table = Table(title="Skills, right answers in per cent: median (worst seed)", title_justify="left")
    table.add_column("family", no_wrap=True)
    for arm in (BASE, *ARMS):
        table.add_column(COLUMNS[arm], justify="right", no_wrap=True)
    for row in rows:
        table.add_row(row.name, *(cell(row, arm) for arm in (BASE, *ARMS)))
    return table


def lessons(summary: Mapping[str, Any]) -> str:
    """One line about the corrections."""
    states = ", ".join(f"{count} {status}" for status, count in sorted(summary["status"].items()))
    late = f"; {summary['unsettled']} did not settle in time" if summary["unsettled"] else ""
    seconds = f", {summary['median_s']:.2f} s each (median)" if summary["median_s"] is not None else ""
    return f"{summary['corrections']} corrections{f': {states}' if states else ''}{seconds}{late}"
