"""Gaps seen through windows of time."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.windows import TimeWindow, gaps_s

TIMES = st.lists(st.floats(0, 100), max_size=20).map(sorted)


def longest(answers: list[list[float]], window: TimeWindow) -> float | None:
    """Return the longest gap that overlaps the window, or None if nothing streamed."""
    return max(gaps_s(answers, window), default=None)


@pytest.mark.parametrize(
    ("window", "expected"),
    [
        (TimeWindow(0, 10), 4.0),  # everything
        (TimeWindow(0, 2), 1.0),  # before the long gap
        (TimeWindow(3, 4), 4.0),  # within the long gap: it counts whole
        (TimeWindow(6.5, 9), 1.0),  # after it
        (TimeWindow(0, 0.5), None),  # before the first piece
        (TimeWindow(9, 10), None),  # after the last one
    ],
)
def test_a_gap_counts_where_it_overlaps_the_window(window: TimeWindow, expected: float | None) -> None:
    """Pieces at 1, 2, 6, 7, 8."""
    assert longest([[1.0, 2.0, 6.0, 7.0, 8.0]], window) == expected


def test_the_pause_between_two_answers_is_no_gap() -> None:
    """Time in which nothing is being answered is no gap."""
    assert longest([[1.0, 2.0], [50.0, 51.0]], TimeWindow(0, 100)) == 1.0


def test_the_longest_of_overlapping_streams_counts() -> None:
    """A stall shows in the stream that was open when it happened."""
    assert longest([[1.0, 2.0], [1.5, 4.5]], TimeWindow(0, 10)) == 3.0


@pytest.mark.parametrize("answers", [[], [[]], [[1.0]]])
def test_without_two_pieces_there_is_no_gap(answers: list[list[float]]) -> None:
    """Nothing streamed, nothing to tell."""
    assert longest(answers, TimeWindow(0, 10)) is None


@given(st.lists(TIMES, max_size=5), st.floats(0, 100), st.floats(0, 100))
def test_a_wider_window_never_shows_a_shorter_gap(answers: list[list[float]], a: float, b: float) -> None:
    """A gap that a part of the time shows, the whole time shows too."""
    part = longest(answers, TimeWindow(min(a, b), max(a, b)))
    whole = longest(answers, TimeWindow(-1, 101))
    assert part is None or (whole is not None and part <= whole)


def test_a_window_knows_its_length() -> None:
    """In seconds."""
    assert TimeWindow(1.0, 3.5).duration_s == 2.5
