"""A heed that is killed while it learns keeps every lesson, whole, and trains each once."""

import pytest

from tests.crash import learning
from tests.live_heed import LiveHeed

pytestmark = [pytest.mark.engine, pytest.mark.crash, pytest.mark.slow, pytest.mark.timeout(900)]

BRIEF = "[sleep]\nmax_steps = 60\n"  # of a consolidation: what it teaches is not what is asked here


@pytest.mark.ends_heed
def test_four_kills_tear_lose_and_double_nothing_and_leave_no_process(live_heed: LiveHeed) -> None:
    """Of heed and of the model's processes alone, at a random moment of an update and of a consolidation each.

    Without the watchdog EngineCore, worker and Python's own helpers would hold 2 GB for good.
    """
    live_heed.configure(BRIEF)
    try:
        findings, figures = live_heed.run(learning.run(live_heed.server, learning.FEW_STARTS, seed=1, people=1))
    except AssertionError:
        print(*live_heed.lines, sep="\n")  # its log does not outlive the test
        raise
    assert (findings.torn, findings.lost, findings.doubled) == ((), (), ())
    assert (figures.torn, figures.left) == ([], [])
    assert figures.num_kills == len(learning.FEW_STARTS)
    assert sum(findings.endings.values()) >= figures.num_kills
