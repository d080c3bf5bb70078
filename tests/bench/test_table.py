"""The table of a benchmark."""

from io import StringIO

import pytest
from rich.console import Console

from bench import table
from bench.figures import Row


def test_a_row_shows_its_numbers_target_and_verdict() -> None:
    """Both numbers, the unit, which of them is judged, and whether it is reached."""
    stream = StringIO()
    Console(file=stream, width=150).print(table.figures([Row("longest gap", "ms", 100.4, 300.0, 250.0, "p95")]))
    for piece in ("longest gap", "100", "300", "ms", "p95 <= 250 ms", "missed"):
        assert piece in stream.getvalue()


@pytest.mark.parametrize(
    ("value", "unit", "shown"), [(1.234, "s", "1.23"), (12.6, "ms", "13"), (None, "s", "-"), (0.812, "ratio", "0.81")]
)
def test_numbers_have_the_digits_their_unit_needs(value: float | None, unit: str, shown: str) -> None:
    """Milliseconds whole, seconds and ratios with two digits."""
    assert table.number(value, unit) == shown


def test_a_ratio_has_no_unit_and_a_row_without_target_no_verdict() -> None:
    """Empty cells stay empty."""
    assert table.target(Row("x", "ratio", 2.0, None, 3.0)) == "<= 3"
    assert table.target(Row("x", "s", 2.0)) == ""
    assert table.verdict(Row("x", "s", 2.0)).plain == ""
    assert table.verdict(Row("x", "s", 2.0, None, 3.0)).plain == "yes"
