"""The picture of /stats: messages and updates per day, as a PNG.

Drawn by matplotlib's Agg backend without pyplot: no display, no global state, so it may run in any thread.
"""

import io
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date

from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

SIZE_INCHES = (8.0, 4.5)
DPI = 100
BLUE, ORANGE, GREY = "#2f6fdb", "#e08a1e", "#6b7280"


@dataclass(frozen=True)
class Day:
    """The counts of one day (UTC)."""

    on: date
    num_messages: int
    num_updates: int


def draw(days: Sequence[Day]) -> bytes:
    """Two rows of bars over the same days. Blocking: some 100 ms."""
    figure = Figure(figsize=SIZE_INCHES, dpi=DPI, layout="constrained")
    upper, lower = figure.subplots(2, 1, sharex=True)
    _bars(upper, "messages per day", [day.num_messages for day in days], BLUE)
    _bars(lower, "updates per day", [day.num_updates for day in days], ORANGE)
    lower.set_xticks(range(len(days)), [f"{day.on:%b} {day.on.day}" for day in days], rotation=45, ha="right")
    figure.supxlabel("days in UTC", fontsize=8, color=GREY)
    picture = io.BytesIO()
    FigureCanvasAgg(figure)
    figure.savefig(picture, format="png")
    return picture.getvalue()


def _bars(axes: Axes, title: str, counts: list[int], colour: str) -> None:
    bars = axes.bar(range(len(counts)), counts, color=colour, width=0.7)
    axes.bar_label(bars, [str(count) if count else "" for count in counts], fontsize=8, color=GREY)
    axes.set_title(title, loc="left", fontsize=10)
    axes.set_ylim(0, max(1, *counts) * 1.2)
    axes.yaxis.set_major_locator(MaxNLocator(nbins=4, integer=True))
    axes.spines[["top", "right"]].set_visible(False)
    axes.tick_params(labelsize=8, colors=GREY)
