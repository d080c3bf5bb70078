"""bot.http.admin.plots: figures as boxes and points."""

import math

import pytest

from bot.http.admin import plots


def test_a_curve_goes_from_its_highest_to_its_lowest() -> None:
    """A curve spans the whole width, with high values at the top."""
    found = plots.curve("loss", [2.0, 1.0, 0.0])
    assert found is not None
    assert found.points == "0.0,0.0 300.0,60.0 600.0,120.0"
    assert (found.low, found.high, found.last, found.num_steps) == (0.0, 2.0, 0.0, 3)


@pytest.mark.parametrize("values", [[], [1.0], [math.nan, math.inf, 1.0], [None, 1.0]])
def test_too_few_values_make_no_curve(values: list[float | None]) -> None:
    """Values that are no numbers are skipped, and fewer than two make no curve."""
    assert plots.curve("loss", values) is None


def test_a_flat_curve_lies_on_the_ground() -> None:
    """A flat curve lies on the ground, without a division by zero."""
    found = plots.curve("loss", [1.0, 1.0])
    assert found is not None
    assert found.points == "0.0,120.0 600.0,120.0"


def test_the_highest_bar_is_as_high_as_the_box() -> None:
    """The highest bar fills the box; zero has no height, and no values make no bars."""
    assert [(bar.y, bar.height) for bar in plots.bars([0, 5, 10])] == [(120.0, 0.0), (60.0, 60.0), (0.0, 120.0)]
    assert [bar.height for bar in plots.bars([0, 0])] == [0.0, 0.0]
    assert plots.bars([]) == []


def test_spans_are_cut_off_at_the_ends() -> None:
    """Spans outside of the timeline are not drawn, and short ones stay visible."""
    found = plots.spans([(-5.0, 5.0), (9.0, 20.0), (20.0, 21.0), (6.0, 6.0)], 0.0, 10.0, 3.0, 4.0)
    assert [(box.x, box.width) for box in found] == [(0.0, 300.0), (540.0, 60.0), (360.0, 0.5)]


@pytest.mark.parametrize(
    ("weight", "expected"),
    [(0.1, ""), (0.2, "up heat-1"), (-1.5, "down heat-3"), (99.0, "up heat-5"), (math.nan, "")],
)
def test_heat_has_five_levels(weight: float, expected: str) -> None:
    """Heat has five levels, and none for tiny weights."""
    assert plots.heat_class(weight) == expected
