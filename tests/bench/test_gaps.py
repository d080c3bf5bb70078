"""The part gaps."""

import pytest

from bench import gaps
from bench.config import BenchConfig
from bench.gaps import AFTER, ANY, QUIET, UPDATE, Watched
from bench.windows import TimeWindow
from evals.client import Client
from tests.evals.fake_heed import FakeHeed, serving


def test_each_window_has_its_own_longest_gap() -> None:
    """Pieces every 10 ms, with a stall of 100 ms in the update and of 50 ms after it."""
    times = [0.0, 0.01, 0.11, 0.12, 0.17, 0.18, 0.19, 0.2]
    watched = Watched(TimeWindow(0.02, 0.1), TimeWindow(0.125, 0.16), TimeWindow(0.175, 0.2))
    found = gaps.gaps_ms([times], [watched])
    assert {kind: [round(gap) for gap in found[kind]] for kind in found} == {
        UPDATE: [100], AFTER: [50], QUIET: [10], ANY + UPDATE: [100], ANY + QUIET: [10, 10, 10],
    }  # fmt: skip


def test_a_window_in_which_nothing_streamed_gives_nothing() -> None:
    """It is left out rather than counted as no gap."""
    empty = TimeWindow(9, 10)
    assert gaps.gaps_ms([[0.0, 1.0]], [Watched(empty, empty, empty)]) == {
        UPDATE: [], AFTER: [], QUIET: [], ANY + UPDATE: [], ANY + QUIET: [],
    }  # fmt: skip


def test_the_ratio_is_between_the_two_95th_percentiles() -> None:
    """Both limits are judged: so many milliseconds, and so many times a quiet window."""
    every = {ANY + UPDATE: [40.0, 80.0], ANY + QUIET: [40.0, 40.0]}
    rows = gaps.rows({UPDATE: [200.0, 200.0], AFTER: [30.0], QUIET: [50.0, 50.0], **every})
    assert [(row.p95 or row.median, row.is_met) for row in rows] == [
        (200.0, True),
        (30.0, None),
        (50.0, None),
        (4.0, False),
        (78.0, True),
        (40.0, None),
        (1.95, True),
        (1.5, True),
    ]


def test_without_windows_there_are_no_rows() -> None:
    """Nothing streamed, nothing to tell."""
    assert gaps.rows({UPDATE: [], AFTER: [], QUIET: []}) == []


async def test_somebody_else_streams_while_every_update_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    """The reader is another person than the one who corrects, and asks until the last window has passed."""
    monkeypatch.setattr(gaps, "PAUSE_S", 0.02)
    fake = FakeHeed()
    async with serving(fake) as url, Client(url, 8) as client:
        samples = await gaps.measure(BenchConfig(updates=2, watched=2), client, "run", lambda _: None)
    assert fake.user("bench-run-gaps-0").active == 2
    assert fake.user("bench-run-reader").active == 0
    assert sum(user == "bench-run-reader" for user, _ in fake.asked) > 2
    assert len(samples[QUIET]) <= 2
