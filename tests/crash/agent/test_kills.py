"""The agents of a heed that is killed do nothing twice, lose nothing and leave no process; careless ones do."""

import pytest

from tests.crash.agent.kills import POINTS, begun, run

pytestmark = [pytest.mark.crash, pytest.mark.slow, pytest.mark.sqlite_only]

CONTROL_KILLS = len(POINTS)
SHORT_S = 2.0  # what is not tied stays for half a minute


async def test_twenty_kills_lose_and_double_nothing(can_run: None) -> None:
    """At random moments of calls, words and lessons, and at random commits."""
    findings, figures = await run(20, seed=1)
    assert (findings.lost, findings.doubled, findings.unasked) == ((), (), ())
    assert figures.left == []
    assert sum(figures.kills.values()) == 20
    assert figures.under_way["running"]
    assert {"ran", "broken off"} <= set(findings.endings)


async def test_a_stop_in_the_middle_of_a_call_ends_it(can_run: None) -> None:
    """heed ends in good order and at once, the tool with it; the next heed tells that it was broken off."""
    async with begun(seed=2) as going:
        findings = await going.stopped(5)
        assert (findings.lost, findings.doubled, findings.unasked) == ((), (), ())
        assert going.figures.left == []
    assert findings.endings.get("broken off", 0) >= 5


async def test_a_session_that_is_kept_too_late_is_found_out(can_run: None) -> None:
    """Where nothing is kept before a call runs, it waits again and is run or denied once more: the books can see it."""
    findings, _ = await run(CONTROL_KILLS, seed=1, mode="careless")
    assert [line for line in (*findings.doubled, *findings.unasked) if " ran" in line]


async def test_a_process_that_stays_is_found_out(can_run: None) -> None:
    """Where tools are not tied to heed they outlive it."""
    _, figures = await run(CONTROL_KILLS, seed=1, mode="untied", patience_s=SHORT_S)
    assert [line for line in figures.left if "sleep" in line]
