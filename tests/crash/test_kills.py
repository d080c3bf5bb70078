"""A heed that is killed loses nothing and does nothing twice; one that keeps its queue in memory does."""

from pathlib import Path

import pytest

from tests.crash.harness import run

pytestmark = [pytest.mark.crash, pytest.mark.slow, pytest.mark.timeout(300)]


async def test_ten_kills_lose_and_double_nothing(tmp_path: Path) -> None:
    """At random moments, at random commits and at random calls, with redelivery and reordering."""
    verdict, figures = await run(tmp_path, 10, seed=1)
    assert (verdict.lost, verdict.doubled) == ((), ())
    assert sum(figures.kills.values()) == 10


async def test_the_control_fails(tmp_path: Path) -> None:
    """With the queue in memory the same run finds something lost or doubled: the harness can see it."""
    verdict, _ = await run(tmp_path, 10, seed=1, mode="memory")
    assert not verdict.is_right
