"""bot.monitoring.stats: figures of everybody, in words."""

import dataclasses
import sys
import time
from pathlib import Path

import pytest

from bot.monitoring import stats
from bot.monitoring.stats import Figures, Machine, Windows
from storage.reports.statistics import Adapters, Queue
from tests.bot.conftest import Heed

NOW_S = 1_800_000_000.0  # 15 January 2027, 08:00 UTC

FIGURES = Figures(
    users=Windows({"telegram": 1}, {"telegram": 2}, {"discord": 1, "telegram": 1200}),
    messages=Windows({"telegram": 3}, {"telegram": 30}, {"discord": 5, "telegram": 300}),
    feedback=Windows({}, {"correction on telegram": 2}, {"correction on telegram": 9, "note on discord": 1}),
    tokens=Windows((10, 5), (100, 50), (1_000_000, 500_000)),
    updates=Windows({"accepted": 1}, {"accepted": 2, "rejected": 1}, {"accepted": 8, "rejected": 1}),
    answer_times_s=[(0.01 * n, 0.1 * n) for n in range(1, 101)],
    update_times_ms=[900.0, 1100.0, 5000.0],
    queue=Queue(2, NOW_S - 75),
    adapters=Adapters(12, 40, 1_234_567, 3),
    drift={"ok": 8, "warn": 3, "critical": 1},
    machine=Machine(93_784.0, 2_100_000_000, (12_000, 141_000)),
    at_s=NOW_S,
)


def test_every_figure_is_said() -> None:
    """Each of the operator's figures stands in a line of its own."""
    lines = stats.words(FIGURES).splitlines()
    for line in (
        "today / 7 days / all (days in UTC)",
        "users: 1 / 2 / 1,201",
        "  discord: 0 / 0 / 1",
        "messages: 3 / 30 / 305",
        "feedback: 0 / 2 / 10",
        "  correction on telegram: 0 / 2 / 9",
        "tokens in: 10 / 100 / 1,000,000",
        "tokens out: 5 / 50 / 500,000",
        "first token: p50 500 ms, p95 950 ms",
        "whole answer: p50 5.0 s, p95 9.5 s",
        "  rejected: 0 / 1 / 1",
        "update: median 1.1 s",
        "queue: 2 waiting, the oldest for 1 min 15 s",
        "adapters: 12, 1.2 MB, 40 versions",
        "rollbacks: 3 lessons undone",
        "drift: 12 people audited, 3 warn, 1 critical",
        "up: 1 d 2 h",
        "memory: 2.1 GB",
        "GPU memory: 12.6 GB of 147.8 GB",
    ):
        assert line in lines


def test_one_version_and_one_lesson_are_singular() -> None:
    """A count of one stands before a noun in the singular."""
    text = stats.words(dataclasses.replace(FIGURES, adapters=Adapters(1, 1, 900, 1)))
    assert "adapters: 1, 900 B, 1 version\n" in text
    assert "rollbacks: 1 lesson undone\n" in text


async def test_an_idle_heed_has_zeros(heed: Heed) -> None:
    """Before anybody came nothing divides by nothing."""
    text = stats.words(await stats.collect(heed.core.database, NOW_S))
    assert "users: 0 / 0 / 0" in text
    assert "first token: p50 0 ms, p95 0 ms" in text
    assert "queue: 0 waiting\n" in text


async def test_figures_are_those_of_the_rows(heed: Heed) -> None:
    """One question and one correction are one message, two answers' tokens, one update and one adapter."""
    first = await heed.ask("bees", user="ana")
    await heed.correct(first["id"], "too long", user="ana")
    figures = await stats.collect(heed.core.database, time.time())
    assert figures.users == Windows({"http": 1}, {"http": 1}, {"http": 1})
    assert figures.messages.today == {"http": 1}
    assert figures.feedback.today == {"correction on http": 1}
    assert figures.tokens.today[1] > 0
    assert figures.updates.all == {"accepted": 1}
    assert figures.adapters.num_versions == 1
    assert figures.machine.uptime_s > 0
    assert figures.machine.memory_bytes > 10_000_000


def test_days_begin_at_midnight() -> None:
    """In UTC, whatever the machine's own time zone."""
    assert NOW_S - stats.day_start_s(NOW_S) == 8 * 3600
    assert stats.day_start_s(NOW_S) - stats.day_start_s(NOW_S, -6) == 6 * 86_400


@pytest.mark.parametrize(
    ("values", "share", "expected"),
    [([], 0.5, 0.0), ([3.0], 0.95, 3.0), ([1.0, 2.0], 0.5, 1.0), ([2.0, 1.0, 3.0], 0.95, 3.0)],
)
def test_percentiles_are_values_that_were_measured(values: list[float], share: float, expected: float) -> None:
    """Nearest rank; nothing between two values."""
    assert stats.percentile(values, share) == expected


async def test_gpu_memory_is_read_from_the_drivers_tool(tmp_path: Path) -> None:
    """Used and whole memory of the first GPU."""
    tool = tmp_path / "tool"
    tool.write_text(f"#!{sys.executable}\nprint('12000, 141000')\nprint('1, 2')\n")
    tool.chmod(0o755)
    assert await stats.gpu_mib(str(tool)) == (12_000, 141_000)


@pytest.mark.parametrize("body", ["print('[N/A], 3')", "raise SystemExit(9)", "print()"])
async def test_a_gpu_that_does_not_say_is_none(tmp_path: Path, body: str) -> None:
    """Nonsense, an error and nothing are all no figure."""
    tool = tmp_path / "tool"
    tool.write_text(f"#!{sys.executable}\n{body}\n")
    tool.chmod(0o755)
    assert await stats.gpu_mib(str(tool)) is None
    assert await stats.gpu_mib(str(tmp_path / "nothing")) is None


async def test_a_tool_that_hangs_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The figures come without it."""
    tool = tmp_path / "tool"
    tool.write_text(f"#!{sys.executable}\nimport time\ntime.sleep(600)\n")
    tool.chmod(0o755)
    monkeypatch.setattr(stats, "GPU_TIMEOUT_S", 0.2)
    assert await stats.gpu_mib(str(tool)) is None


@pytest.mark.parametrize(
    ("value_s", "expected"), [(0, "0 s"), (59.9, "59 s"), (75, "1 min 15 s"), (7200, "2 h 0 min"), (90_061, "1 d 1 h")]
)
def test_spans_have_two_units(value_s: float, expected: str) -> None:
    """The largest ones."""
    assert stats.span(value_s) == expected


@pytest.mark.parametrize(
    ("size_bytes", "expected"), [(0, "0 B"), (999, "999 B"), (1500, "1.5 kB"), (2e9, "2.0 GB"), (2e12, "2000.0 GB")]
)
def test_sizes_have_a_unit(size_bytes: float, expected: str) -> None:
    """In powers of a thousand."""
    assert stats.size(size_bytes) == expected
