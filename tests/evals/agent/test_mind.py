"""evals.agent.mind: a measured person answers over HTTP and keeps nothing as good."""

import random
from typing import Any, cast

import pytest

from bot.agent.state import CallCorrection
from bot.agent.tools import definitions
from bot.errors import CONTEXT_LENGTH_EXCEEDED, SessionTooLong
from engine.pocket.workshop.session import SYSTEM
from evals.agent.mind import MeasuredMind
from evals.client import Client
from evals.errors import CallRefused
from tests.evals.agent.planner import PlanningClient
from tests.evals.agent.test_verdict import tasks


class Refusing(PlanningClient):
    """A heed to which every conversation is too long, or wrong."""

    def __init__(self, code: str) -> None:
        super().__init__()
        self._code = code

    async def step(self, *_: Any, **__: Any) -> Any:
        """Refuse it."""
        raise CallRefused("no", 400, self._code)


@pytest.mark.parametrize(("code", "error"), [(CONTEXT_LENGTH_EXCEEDED, SessionTooLong), ("other", CallRefused)])
async def test_a_conversation_that_is_too_long_is_the_sessions_to_shorten(code: str, error: type[Exception]) -> None:
    """Any other refusal ends the measurement."""
    with pytest.raises(error):
        await MeasuredMind(cast(Client, Refusing(code)), "ana").answer([], definitions())


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
