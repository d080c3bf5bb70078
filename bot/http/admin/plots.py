"""Figures as points and boxes of inline SVG. Pure; numbers only, so that no text can get into a picture."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

WIDTH, HEIGHT = 600.0, 120.0
HEAT_LEVELS = 5
STRONGEST_NATS = 3.0  # a weight of this size has the full colour
FAINTEST_NATS = 0.15  # below this a token keeps the colour of the page


@dataclass(frozen=True)
class Curve:
    """One line: the `points` of a polyline in a box of WIDTH x HEIGHT, and the range of its values."""

    name: str
    points: str
    low: float
    high: float
    last: float
    num_steps: int


@dataclass(frozen=True)
class Box:
    """A bar or a span of time in a box of WIDTH units."""

    x: float
    y: float
    width: float
    height: float


def curve(name: str, values: Sequence[float | None]) -> Curve | None:
    """Return the line through some values in order, or None if fewer than two are finite numbers."""
    finite = [value for value in values if value is not None and math.isfinite(value)]
    if len(finite) < 2:
        return None
    low, high = min(finite), max(finite)
    scale = HEIGHT / (high - low) if high > low else 0.0
    step = WIDTH / (len(finite) - 1)
    points = " ".join(f"{n * step:.1f},{HEIGHT - (value - low) * scale:.1f}" for n, value in enumerate(finite))
    return Curve(name, points, low, high, finite[-1], len(finite))


def bars(values: Sequence[float]) -> list[Box]:
    """Return one bar for each value, the highest as high as the box."""
    most = max(values, default=0.0) or 1.0
    step = WIDTH / max(len(values), 1)
    return [
        Box(n * step + step * 0.1, HEIGHT * (1 - value / most), step * 0.8, HEIGHT * value / most)
        for n, value in enumerate(values)
    ]


def spans(pairs: Sequence[tuple[float, float]], start_s: float, end_s: float, row: float, height: float) -> list[Box]:
    """Return spans of time as boxes in one row of a timeline, cut off at its ends."""
    scale = WIDTH / (end_s - start_s)
    inside = [(max(a, start_s), min(b, end_s)) for a, b in pairs if b > start_s and a < end_s]
    return [Box((a - start_s) * scale, row, max((b - a) * scale, 0.5), height) for a, b in inside]


def heat_class(weight: float) -> str:
    """Return the CSS classes of a heat map's token: up or down, and its strength in five levels."""
    if not math.isfinite(weight) or abs(weight) < FAINTEST_NATS:
        return ""
    level = min(HEAT_LEVELS, 1 + int(abs(weight) / STRONGEST_NATS * HEAT_LEVELS))
    return f"{'up' if weight > 0 else 'down'} heat-{level}"
