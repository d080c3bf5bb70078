"""bot.agent.core_mind: a person's own answers and lessons, without HTTP in between."""

import asyncio

import pytest
from sqlmodel import select

from bot.agent.core_mind import CoreMind
from bot.agent.state import CallCorrection
from bot.agent.tools import definitions
from bot.errors import SessionTooLong
from engine.errors import PromptTooLongError
from storage.learning import feedback
from storage.tables import Feedback
from tests.bot.agent.rig import AgentRig
from tests.patience import until

ASKED = [{"role": "system", "content": "You work."}, {"role": "user", "content": "bees"}]


async def mind_of(rigged: AgentRig, told: list[str] | None = None) -> CoreMind:
    """The local person's."""
    return CoreMind(rigged.core, await rigged.person(), (told if told is not None else []).append)


async def test_an_answer_is_stored_with_its_calls(rigged: AgentRig) -> None:
    """Its id names it to feedback; the tools were in its prompt."""
    rigged.will_call("read", path="a")
    mind = await mind_of(rigged)
    answer = await mind.answer(ASKED, definitions())
    assert answer.calls[0]["function"]["name"] == "read"
    assert rigged.engine.requests[-1].tools == definitions()
    assert rigged.engine.requests[-1].is_whole  # the session shortens it: what tools answered goes first
    stored = await rigged.core.gateway.completion(await rigged.person(), answer.id)
    assert stored.messages == ASKED
    rigged.will_say()
    assert (await mind.answer(ASKED, definitions())).text


async def test_a_correction_is_one_lesson(rigged: AgentRig) -> None:
    """The same key is not learned twice; its line and its heat come with it."""
    mind = await mind_of(rigged)
    answer = await mind.answer(ASKED, definitions())
    correction = CallCorrection(answer.id, "too long", context=("It uses Poetry.",))
    first, second = [await mind.teach(correction) for _ in range(2)]
    assert first.line.startswith("Learned: v1 in")
    assert (bool(first.heat), first.version) == (True, 1)
    rows = await rigged.core.database.read(lambda s: s.exec(select(Feedback)).all())
    assert [row.context for row in rows] == [["It uses Poetry."]]
    assert second.line.startswith("Learned: v1")
    assert rigged.engine.num_learned == 1


async def test_a_long_lesson_tells_how_far_it_is(rigged: AgentRig, monkeypatch: pytest.MonkeyPatch) -> None:
    """While it lasts."""
    monkeypatch.setattr("bot.agent.core_mind.LOOK_EVERY_S", 0.01)
    told: list[str] = []
    mind = await mind_of(rigged, told)
    answer = await mind.answer(ASKED, definitions())
    rigged.engine.learn_delay_s = 60.0
    rigged.engine.lesson_share = 0.4
    lesson = asyncio.create_task(mind.teach(CallCorrection(answer.id, "too long")))
    await until(lambda: told)
    rigged.engine.finish_lessons()
    assert (await lesson).line.startswith("Learned: v1")
    assert told[0] == "Learning: writing examples, 40 %"


async def test_an_answer_can_be_approved(rigged: AgentRig) -> None:
    """It is kept as a good one, once however often that is said, and nothing is trained."""
    mind = await mind_of(rigged)
    answer = await mind.answer(ASKED, definitions())
    for _ in range(2):
        await mind.approve(answer.id)
    user_id = await rigged.person()
    rows = await rigged.core.database.read(lambda s: feedback.history(s, user_id, 9))
    assert len(rows) == 1
    assert (await rigged.core.gateway.completion(await rigged.person(), answer.id)).is_gold
    assert rigged.engine.num_learned == 0


async def test_a_session_that_does_not_fit_says_so(rigged: AgentRig) -> None:
    """So that something is left out of it."""
    rigged.engine.failure = PromptTooLongError("The messages have 9 tokens; the limit is 8.")
    with pytest.raises(SessionTooLong, match="9 tokens"):
        await (await mind_of(rigged)).answer(ASKED, definitions())
