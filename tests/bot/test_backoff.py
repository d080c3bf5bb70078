"""bot.backoff: longer each time, bounded, and never too much for a float."""

import pytest

from bot.backoff import MAX_BACKOFF_S, MIN_BACKOFF_S, backoff_s


def longest(_least_s: float, most_s: float) -> float:
    """The jitter that always waits the whole time."""
    return most_s


def test_it_doubles_up_to_a_minute() -> None:
    """2, 4, 8 seconds at most, and then sixty."""
    assert [backoff_s(num, longest) for num in (1, 2, 3, 5, 6, 7)] == [2.0, 4.0, 8.0, 32.0, 60.0, 60.0]


@pytest.mark.parametrize("num_failures", [1, 100, 1024, 1_000_000])
def test_a_platform_may_be_away_for_ever(num_failures: int) -> None:
    """However many failures there were, the wait is a number within the bounds."""
    assert MIN_BACKOFF_S <= backoff_s(num_failures) <= MAX_BACKOFF_S
