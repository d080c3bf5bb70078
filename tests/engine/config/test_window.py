"""engine.config.window: the nightly window."""

from datetime import date, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.config import ConfigError, ConsolidationConfig
from engine.config.window import MINUTES_OF_DAY, Window

minutes = st.integers(0, MINUTES_OF_DAY - 1)
moments = st.datetimes(datetime(2000, 1, 2), datetime(2100, 1, 1))  # noqa: DTZ001 - local time has no zone here
windows = st.tuples(minutes, minutes).filter(lambda pair: pair[0] != pair[1]).map(lambda pair: Window(*pair))


def text(window: Window) -> str:
    """Return a window as it is written in the settings."""
    return "-".join(f"{m // 60:02}:{m % 60:02}" for m in (window.begin, window.end))


@pytest.mark.parametrize(
    ("at", "night"),
    [
        ("2026-11-20T01:59", None),
        ("2026-11-20T02:00", 20),
        ("2026-11-20T05:59", 20),
        ("2026-11-20T06:00", None),
        ("2026-11-20T23:59", None),
    ],
)
def test_the_default_window_is_from_two_to_six(at: str, night: int | None) -> None:
    """The beginning belongs to the window, the end does not."""
    found = Window.parse(ConsolidationConfig().window).night(datetime.fromisoformat(at))
    assert found == (date(2026, 11, night) if night else None)


@pytest.mark.parametrize(
    ("at", "night"),
    [("2026-11-20T23:30", 20), ("2026-11-21T00:00", 20), ("2026-11-21T04:59", 20), ("2026-11-21T05:00", None)],
)
def test_a_window_over_midnight_is_one_night(at: str, night: int | None) -> None:
    """The night is named by the day on which it began."""
    found = Window.parse("23:30-05:00").night(datetime.fromisoformat(at))
    assert found == (date(2026, 11, night) if night else None)


def test_the_whole_day_may_be_night() -> None:
    """The window 00:00-24:00 has no gap."""
    window = Window.parse("00:00-24:00")
    assert window.night(datetime.fromisoformat("2026-11-20T23:59")) == date(2026, 11, 20)


@pytest.mark.parametrize(
    "written",
    ["", "2:00-6:00", "02:00", "02:00-25:00", "02:60-03:00", "24:00-02:00", "02:00-02:00", "٠٢:00-03:00",
     "02:00-06:00 ", "night"],
)  # fmt: skip
def test_a_window_that_makes_no_sense_is_refused_by_its_name(written: str) -> None:
    """The error names the setting, shows what was written and says how to write it."""
    with pytest.raises(ConfigError, match=r"^sleep\.window is ") as refused:
        ConsolidationConfig(window=written)
    assert repr(written) in str(refused.value)
    assert "HH:MM-HH:MM" in str(refused.value) or "00:00-24:00" in str(refused.value)


@given(windows)
def test_what_is_written_is_what_is_read(window: Window) -> None:
    """Every pair of different times can be written and read back."""
    assert Window.parse(text(window)) == window


@given(windows, moments)
def test_every_moment_is_in_a_window_or_in_the_one_that_fills_the_day(window: Window, at: datetime) -> None:
    """Begin and end exchanged give exactly the rest of the day."""
    rest = Window(window.end, window.begin)
    assert (window.night(at) is None) != (rest.night(at) is None)


@given(windows, moments)
def test_a_night_has_one_name_and_the_length_of_its_window(window: Window, at: datetime) -> None:
    """Each night has as many minutes as its window."""
    start = at.replace(hour=12, minute=0) if window.begin > window.end else at.replace(hour=0, minute=0)
    names = [window.night(start + timedelta(minutes=m)) for m in range(MINUTES_OF_DAY)]
    length = (window.end - window.begin) % MINUTES_OF_DAY
    assert sum(name is not None for name in names) == length
    if window.begin > window.end and window.end <= 12 * 60 <= window.begin:
        assert len({name for name in names if name is not None}) == 1


@given(windows, moments, st.timedeltas(timedelta(days=-300), timedelta(days=300)))
def test_a_clock_that_jumps_changes_nothing_later(window: Window, at: datetime, jump: timedelta) -> None:
    """Nothing is remembered: the same moment is the same night before and after a jump."""
    before = window.night(at)
    window.night(at + jump)
    assert window.night(at) == before
