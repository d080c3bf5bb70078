"""The table a person reads: figures beside their targets."""

from collections.abc import Sequence

from rich.table import Table
from rich.text import Text

from bench.figures import Row


def number(value: float | None, unit: str) -> str:
    """One value as it is printed."""
    if value is None:
        return "-"
    return f"{value:.0f}" if unit in ("ms", "tokens/s") else f"{value:.2f}"


def target(row: Row) -> str:
    """Return the target as it is printed."""
    if row.target is None:
        return ""
    which = "p95 " if row.judged == "p95" else ""
    return f"{which}<= {row.target:g} {row.unit if row.unit != 'ratio' else ''}".rstrip()


def verdict(row: Row) -> Text:
    """Return the last column."""
    if row.is_met is None:
        return Text("")
    return Text("yes", style="green") if row.is_met else Text("missed", style="bold red")


def figures(rows: Sequence[Row]) -> Table:
    """Return the figures of the benchmark."""
    table = Table(title="How fast heed is", title_justify="left")
    table.add_column("figure", no_wrap=True)
    for name in ("median", "p95"):
        table.add_column(name, justify="right")
    for name in ("unit", "target", "reached"):
        table.add_column(name, no_wrap=True)
    for row in rows:
        unit = row.unit
        table.add_row(row.name, number(row.median, unit), number(row.p95, unit), unit, target(row), verdict(row))
    return table
