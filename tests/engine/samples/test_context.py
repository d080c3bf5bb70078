"""engine.samples.context: the parts of a running engine that learning needs."""

import pytest

from tests.engine.live import Live

pytestmark = [pytest.mark.engine, pytest.mark.asyncio(loop_scope="session")]


async def test_a_running_engine_hands_its_own_parts_around(live: Live) -> None:
    """Learning works with the host, the database and the settings of the engine itself."""
    context = live.engine._context
    assert context.config is live.engine.config
    assert context.host is live.host
    assert context.database is live.database
    assert context.max_model_len == live.host.max_model_len > 0
