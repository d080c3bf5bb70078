"""The process that owns vLLM takes its children with it; the state after a SIGKILL is checked in `test_learning`."""

import os

import pytest

from tests.crash.learning import descendants, is_model
from tests.live_heed import LiveHeed

pytestmark = [pytest.mark.engine, pytest.mark.crash, pytest.mark.slow]


def test_ctrl_c_in_the_terminal_reaches_the_owner_alone(live_heed: LiveHeed) -> None:
    """The children have a session of their own: the owner decides when and how they end."""
    children = [child for child in descendants(live_heed.pid) if is_model(child)]
    sessions = {os.getsid(child.pid) for child in children}
    assert sessions
    assert os.getsid(live_heed.pid) not in sessions
