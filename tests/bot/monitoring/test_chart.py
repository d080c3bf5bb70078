"""bot.monitoring.chart: a picture of the days."""

import struct
from datetime import date, timedelta

import pytest

from bot.monitoring import chart
from bot.monitoring.chart import Day

FIRST = date(2026, 10, 28)
PNG = b"\x89PNG\r\n\x1a\n"


def days(*counts: tuple[int, int]) -> list[Day]:
    """Days in a row."""
    return [Day(FIRST + timedelta(days=n), *pair) for n, pair in enumerate(counts)]


@pytest.mark.parametrize("counts", [[(0, 0)] * 14, [(n * 37 % 50, n % 4) for n in range(14)], [(10**6, 1)], [(1, 0)]])
def test_it_is_a_png_of_its_size(counts: list[tuple[int, int]]) -> None:
    """Whatever the counts: 800 by 450 points, a few ten kilobytes."""
    picture = chart.draw(days(*counts))
    assert picture.startswith(PNG)
    assert struct.unpack(">II", picture[16:24]) == (800, 450)
    assert len(picture) < 100_000


def test_other_counts_are_another_picture() -> None:
    """The picture shows what it is given, and the same counts give the same one."""
    first = days(*[(5, 1)] * 14)
    assert chart.draw(first) == chart.draw(first)
    assert chart.draw(first) != chart.draw([*first[:-1], Day(first[-1].on, 6, 1)])
