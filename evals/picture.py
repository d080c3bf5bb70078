"""Pictures of an evaluation, as PNG: matplotlib's Agg backend without pyplot, so that no display is needed.

Blocking, all of them: some tenths of a second each.
"""

import io
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

INCHES_PER_ROW = 0.75
WIDTH_INCHES = 9.0
DPI = 100
COLOURS = ("#2f6fdb", "#e08a1e", "#3a9d5d", "#b04a9b", "#6b7280")
GOOD, BAD, FAINT = "#3a9d5d", "#c8372d", "#9aa3af"
SMALL = 8  # points
SHARES = (
    (0.0, "#b3261e"),
    (0.5, "#f0b35a"),
    (0.9, "#fdf3d0"),
    (1.0, "#bfe3c6"),
)  # of a heat map: what is short is warm
DARK_BELOW = 0.2  # of that scale: there its numbers are white

Value = float | None


@dataclass(frozen=True)
class Panel:
    """One set of axes: values by number, and the bound that they should stay on one side of."""

    title: str
    unit: str
    series: Mapping[str, Sequence[Value]]
    limit: float | None = None
    is_at_least: bool = False
    is_logarithmic: bool = False
    counted: str = "lesson"  # what the numbers below count


@dataclass(frozen=True)
class Change:
    """A value before and after one lesson."""

    before: float
    after: float
    is_accepted: bool


def bars(rows: Sequence[str], series: Mapping[str, Sequence[float | None]]) -> bytes:
    """Shares (0 to 1) side by side: a group of horizontal bars per row, a colour per series; None is a dash."""
    figure = _figure(1 + INCHES_PER_ROW * len(rows))
    axes = figure.subplots()
    height = 0.8 / max(1, len(series))
    for place, (name, values) in enumerate(series.items()):
        at = [row + (place - (len(series) - 1) / 2) * height for row in range(len(rows))]
        lengths = [100 * (value or 0) for value in values]
        drawn = axes.barh(at, lengths, height, label=name, color=COLOURS[place % len(COLOURS)])
        labels = ["\u2013" if value is None else f"{100 * value:.0f}" for value in values]
        axes.bar_label(drawn, labels, fontsize=7, padding=2)
    axes.set_yticks(range(len(rows)), rows, fontsize=SMALL)
    axes.invert_yaxis()
    axes.set_xlim(0, 108)
    axes.set_xlabel("per cent", fontsize=SMALL)
    axes.spines[["top", "right"]].set_visible(False)
    if len(series) > 1:
        above = (0.4, 1.0 + 0.4 / max(1, len(rows)))
        axes.legend(fontsize=SMALL, loc="upper center", ncols=len(series), bbox_to_anchor=above)
    return _png(figure)


def curves(panels: Sequence[Panel]) -> bytes:
    """Panels one below the other, each with a line and dots per series, and its bound."""
    figure = _figure(2.3 * len(panels))
    for axes, panel in zip(figure.subplots(len(panels), squeeze=False)[:, 0], panels, strict=True):
        for place, (name, values) in enumerate(panel.series.items()):
            shown = [math.nan if value is None else value for value in values]
            numbers = range(1, len(shown) + 1)
            axes.plot(numbers, shown, ".-", lw=0.7, ms=5, label=name, color=COLOURS[place % len(COLOURS)])
        if panel.is_logarithmic and any(value for values in panel.series.values() for value in values):
            axes.set_yscale("log")
        axes.margins(x=0.01)
        _bound(axes, panel)
        _labels(axes, panel.title, panel.unit, panel.counted)
        if len(panel.series) > 1 or panel.limit is not None:
            axes.legend(fontsize=7, loc="center left", bbox_to_anchor=(1.0, 0.5), frameon=False)
    return _png(figure)


def _bound(axes: Axes, panel: Panel) -> None:
    """Draw the bound as a dashed line."""
    if panel.limit is not None:
        word = "at least" if panel.is_at_least else "at most"
        axes.axhline(panel.limit, ls="--", lw=1, color=BAD, label=f"{word} {panel.limit:g}")


def changes(groups: Mapping[str, Sequence[Change]], title: str, unit: str) -> bytes:
    """Return a line from before to after for every lesson, one panel per group; refused ones are red."""
    figure = _figure(2.6 * len(groups))
    for axes, (name, found) in zip(figure.subplots(len(groups), squeeze=False)[:, 0], groups.items(), strict=True):
        for number, change in enumerate(found, 1):
            colour = GOOD if change.is_accepted else BAD
            axes.plot([number, number], [change.before, change.after], lw=1, color=colour, alpha=0.45)
            axes.plot(number, change.before, "o", ms=3, color=FAINT)
            axes.plot(number, change.after, "o", ms=3.5, color=colour)
        axes.axhline(0, lw=0.8, color=FAINT)
        _labels(axes, f"{title}: {name}", unit, "lesson")
        axes.margins(x=0.5 / max(1, len(found)))
    _legend(figure)
    return _png(figure)


def _legend(figure: Figure) -> None:
    axes = figure.axes[0]
    for label, colour in (("before", FAINT), ("after, accepted", GOOD), ("after, refused", BAD)):
        axes.plot([], [], "o", ms=3.5, color=colour, label=label)
    figure.legend(fontsize=7, ncols=3, loc="outside lower center", frameon=False)


def heat(rows: Sequence[str], columns: Sequence[str], values: Sequence[Sequence[Value]], title: str) -> bytes:
    """Shares (0 to 1) as coloured cells with their per cent; None stays empty."""
    figure = _figure(1.3 + 0.34 * len(rows), min(WIDTH_INCHES, 2.6 + 0.95 * len(columns)))
    axes = figure.subplots()
    colours = LinearSegmentedColormap.from_list("shares", SHARES)
    shown = [[math.nan if value is None else value for value in row] for row in values]
    axes.imshow(shown, cmap=colours, vmin=0, vmax=1, aspect="auto")
    for y, row in enumerate(values):
        for x, value in enumerate(row):
            if value is not None:
                ink = "white" if value < DARK_BELOW else "black"
                axes.text(x, y, f"{100 * value:.0f}", ha="center", va="center", fontsize=SMALL, color=ink)
    axes.set_xticks(range(len(columns)), columns, fontsize=7)
    axes.set_yticks(range(len(rows)), rows, fontsize=SMALL)
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)
    axes.set_title(title, fontsize=9, loc="left")
    return _png(figure)


def _labels(axes: Axes, title: str, unit: str, counted: str) -> None:
    axes.set_title(title, fontsize=9, loc="left")
    axes.set_ylabel(unit, fontsize=SMALL)
    axes.set_xlabel(counted, fontsize=SMALL)
    axes.tick_params(labelsize=7)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.spines[["top", "right"]].set_visible(False)


def _figure(height_inches: float, width_inches: float = WIDTH_INCHES) -> Figure:
    return Figure(figsize=(width_inches, height_inches), dpi=DPI, layout="constrained")


def _png(figure: Figure) -> bytes:
    FigureCanvasAgg(figure)
    out = io.BytesIO()
    figure.savefig(out, format="png")
    return out.getvalue()
