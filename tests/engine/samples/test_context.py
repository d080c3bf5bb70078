"""engine.samples.context: the parts that lessons, consolidations and audits share."""

import pytest

from tests.engine.live import Live

pytestmark = [pytest.mark.engine, pytest.mark.asyncio(loop_scope="session")]


async def test_everything_that_learns_shares_its_parts(live: Live) -> None:
    """Lessons, consolidations and answers use one store of rollouts and one set of active adapters."""
    context = live.parts.context
    assert live.parts.learner._rollouts is live.parts.consolidator._rehearsals._rollouts is context.rollouts
    assert live.parts.learner._active is live.parts.generator._active is context.active
