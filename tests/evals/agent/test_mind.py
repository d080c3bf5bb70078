"""evals.agent.mind: a measured person answers over HTTP and keeps nothing as good."""

import random
from typing import cast

from bot.agent.state import CallCorrection
from bot.agent.tools import definitions
from engine.pocket.workshop.session import SYSTEM
from evals.agent.mind import MeasuredMind
from evals.client import Client
from tests.evals.agent.planner import PlanningClient
from tests.evals.agent.test_verdict import tasks


async def test_it_answers_learns_and_keeps_nothing() -> None:
    """A lesson that was refused has no version."""
    heed = PlanningClient()
    task = heed.knows(tasks.drawn("run", random.Random(1)))
    mind = MeasuredMind(cast(Client, heed), "ana")
    asked = [{"role": "system", "content": SYSTEM}, {"role": "user", "content": task.text}]
    answer = await mind.answer(asked, definitions())
    assert answer.calls[0]["function"]["name"] == "bash"
    assert (await mind.teach(CallCorrection(answer.id, "ask first", context=("a",)))).version == 1
    assert heed.corrections == [("ana", "ask first", ["a"])]
    await mind.approve(answer.id)
    assert len(mind.lessons) == 1
    refused = MeasuredMind(cast(Client, PlanningClient(is_learning=False)), "ben")
    assert (await refused.teach(CallCorrection("x", "no"))).version is None
