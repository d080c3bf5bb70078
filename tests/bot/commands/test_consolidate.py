"""bot.commands.consolidate: waiting for a consolidation or a rebuild."""

import pytest

from bot.commands.consolidate import consolidate, rebuild
from bot.errors import NotReady
from tests.bot.conftest import Heed, StartHeed


async def test_it_does_not_wait_for_ever(start_heed: StartHeed) -> None:
    """Like a lesson, it goes on without whoever asked."""
    heed = await start_heed(chat={"learn_timeout_s": 0.01})
    heed.engine.learn_delay_s = 3600
    assert await consolidate(heed.core, "anybody") is None
    assert await rebuild(heed.core, "anybody") is None


async def test_it_is_refused_while_heed_is_not_ready(heed: Heed) -> None:
    """Whoever asks may try again."""
    heed.engine.is_ready = False
    with pytest.raises(NotReady):
        await consolidate(heed.core, "anybody")
    with pytest.raises(NotReady):
        await rebuild(heed.core, "anybody")
