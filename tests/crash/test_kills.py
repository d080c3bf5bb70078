"""A heed that is killed or stopped loses nothing and does nothing twice; one that keeps its queue in memory does."""

from pathlib import Path

import pytest

from tests.crash.harness import STOP_WITHIN_S, run

pytestmark = [pytest.mark.crash, pytest.mark.slow]


async def test_ten_kills_lose_and_double_nothing(tmp_path: Path) -> None:
    """At random moments, at random commits and at random calls, with redelivery and reordering."""
    verdict, figures = await run(tmp_path, num_kills=10, seed=1)
    assert (verdict.lost, verdict.doubled) == ((), ())
    assert sum(figures.kills.values()) == 10


@pytest.mark.parametrize("platform", ["discord", "discord forgets"])
async def test_kills_on_discord_lose_and_double_nothing(tmp_path: Path, platform: str) -> None:
    """Nothing is lost or doubled when Discord keeps the session, nor when it drops it in half of the cases."""
    verdict, figures = await run(tmp_path, platform, num_kills=5, seed=1)
    assert (verdict.lost, verdict.doubled) == ((), ())
    assert sum(figures.kills.values()) == 5


@pytest.mark.parametrize(("platform", "num_kills"), [("telegram", 10), ("discord", 5)])
async def test_the_control_fails(tmp_path: Path, platform: str, num_kills: int) -> None:
    """With the queue in memory the same run finds something lost or doubled: the harness can see it."""
    verdict, _ = await run(tmp_path, platform, num_kills=num_kills, seed=1, mode="memory")
    assert not verdict.is_right


async def test_stops_under_load_are_in_time_and_lose_nothing(tmp_path: Path) -> None:
    """People go on acting while heed is asked to end, and each heed ends in good order."""
    verdict, figures = await run(tmp_path, num_stops=3, seed=1)
    assert (verdict.lost, verdict.doubled) == ((), ())
    assert len(figures.stops_s) == 3
    assert figures.longest_stop_s <= STOP_WITHIN_S
