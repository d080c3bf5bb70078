"""heed's own share is measured on the real parts, and judged against its targets."""

import pytest

from bench import intake
from bench.config import BenchConfig


async def test_every_message_is_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    """One sample per chat and round, and a rate per round."""
    monkeypatch.setattr(intake, "MESSAGES_EACH", 2)
    told: list[str] = []
    config = BenchConfig(chats=3, rounds=2, only=("intake",))
    samples = await intake.measure(config, told.append)
    assert len(samples["added_ms"]) == 6
    assert len(samples["per_second"]) == 2
    assert min(samples["added_ms"]) > 0
    assert told == ["intake"] * intake.units(config)


def test_the_rows_are_judged() -> None:
    """A 99th percentile of 50 ms and 300 messages a second are the targets."""
    slow = intake.rows({"added_ms": [10.0] * 90 + [80.0] * 10, "per_second": [100.0]})
    assert [row.is_met for row in slow] == [None, False, False]
    quick = intake.rows({"added_ms": [10.0, 20.0], "per_second": [400.0, 500.0]})
    assert [row.is_met for row in quick] == [None, True, True]
