"""engine.learning.bystanders: other prompts, whose answers a remark about one answer must leave as they are."""

import pytest

from engine.adapter_ref import ZERO_ADAPTER
from engine.config import LearnConfig
from engine.gates.candidate import Verdict
from engine.learning.bystanders import CHECK, NUM_BYSTANDERS, REASON, Bystanders
from tests.engine.live import Live

pytestmark = [pytest.mark.engine, pytest.mark.asyncio(loop_scope="session")]

TOPICS = [[{"role": "user", "content": f"Tell me about the {animal}"}] for animal in ("koala", "panda", "tiger")]


async def test_a_version_that_answers_other_prompts_otherwise_is_refused(live: Live) -> None:
    """How many it changes is on record; the version before changes none."""
    user_id, _ = await live.lesson()
    learned = await live.parts.context.active.active(user_id)
    bystanders = Bystanders(live.parts.context.rollouts, ZERO_ADAPTER, TOPICS, 40)
    refused = await bystanders.examine(learned, Verdict(True))
    assert (refused.is_accepted, refused.reason, refused.checks) == (False, REASON, {CHECK: False})
    assert 1 <= refused.figures["changed_others"] <= len(TOPICS)
    same = await bystanders.examine(ZERO_ADAPTER, Verdict(True))
    assert (same.is_accepted, same.figures["changed_others"]) == (True, 0)


async def test_what_was_refused_before_stays_refused(live: Live) -> None:
    """For the first reason."""
    bystanders = Bystanders(live.parts.context.rollouts, ZERO_ADAPTER, TOPICS[:1], 8)
    verdict = await bystanders.examine(ZERO_ADAPTER, Verdict(False, "It is too large."))
    assert (verdict.is_accepted, verdict.reason) == (False, "It is too large.")


async def test_the_lessons_own_prompt_is_no_bystander(live: Live) -> None:
    """Eight others are, of the bank, whichever was asked."""
    rollouts = live.parts.context.rollouts
    (asked,) = rollouts.with_topics([], 1)
    found = Bystanders.of(rollouts, ZERO_ADAPTER, asked, LearnConfig()).conversations
    assert len(found) == NUM_BYSTANDERS
    assert asked not in found
