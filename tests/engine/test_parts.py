"""Tests of the parts of a running engine."""

import pytest

from tests.engine.live import Live

pytestmark = [pytest.mark.engine, pytest.mark.asyncio(loop_scope="session")]


async def test_lessons_and_consolidations_make_candidates_in_one_place(live: Live) -> None:
    """One update is open at a time, so there is one maker of candidates and one finder of facts."""
    assert live.parts.learner._candidates is live.parts.consolidator._candidates
    assert live.parts.learner._facts is live.parts.consolidator._facts
