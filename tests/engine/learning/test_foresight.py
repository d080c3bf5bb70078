"""engine.learning.foresight: what lessons will need is made before anyone waits for it."""

from dataclasses import replace
from typing import Any

import pytest

from bot.agent.state import SYSTEM
from bot.agent.tools import definitions
from engine.adapter_ref import ZERO_ADAPTER
from engine.learning.intent import NUM_OTHERS, NUM_TASKS
from engine.prompts.tool_messages import carrying
from engine.requests import ChatMessage, GenerateRequest
from engine.samples.rollouts import Rollout, RolloutStore, workplace
from tests.engine.live import Live

pytestmark = [pytest.mark.engine, pytest.mark.asyncio(loop_scope="session")]
TASKS = tuple((("user", f"Set host to {n} in app.cfg."),) for n in range(20))


@pytest.fixture
def rollouts(live: Live, monkeypatch: pytest.MonkeyPatch) -> RolloutStore:
    """Return the engine's rollouts; the bank has tasks."""
    found = live.parts.context.rollouts
    monkeypatch.setattr(found, "_bank", replace(live.parts.context.bank, tasks=TASKS, task_tools=("read",)))
    return found


def begun(folder: str) -> ChatMessage:
    """Return the system message of a session in a folder that no other test works in."""
    return {"role": "system", "content": f"{SYSTEM}\nThe folder is {folder}."}


def ready(rollouts: RolloutStore, system: ChatMessage) -> list[Rollout]:
    """Return the base model's answers to tasks that begin with a system message."""
    key = ZERO_ADAPTER.name, workplace(carrying([system], definitions()))
    return rollouts._ready.get(key, [])


async def test_the_first_call_of_a_session_has_the_tasks_answered(live: Live, rollouts: RolloutStore) -> None:
    """With its own system message and tools, as many as a lesson tries, once for everybody."""
    system, answered = begun("one"), list[list[Rollout]]()
    for _ in range(2):
        await live.result(await live.person(), "Set gain to 5.", prior=(system,), tools=tuple(definitions()))
        await live.engine.settled()
        answered.append(ready(rollouts, system))
    first, second = answered
    assert first is second
    assert len(first) == NUM_TASKS + 1
    assert {answer.messages[0]["content"] for answer in first} == {system["content"]}
    assert await rollouts.take(ZERO_ADAPTER, [], NUM_TASKS, without=first[0].messages) == first[1:]


@pytest.mark.parametrize(
    ("is_learning", "tools", "has_system"),
    [(False, definitions(), True), (True, [], True), (True, definitions(), False)],
)
async def test_nothing_is_answered_that_no_lesson_would_use(
    live: Live, rollouts: RolloutStore, is_learning: bool, tools: Any, has_system: bool
) -> None:
    """Of a person who does not teach heed; of a chat; of a conversation that is no session's."""
    system = begun(f"{is_learning} {len(tools)} {has_system}")
    prior = (system,) if has_system else ()
    before = len(rollouts._ready)
    user_id = await live.person(is_learning=is_learning)
    await live.result(user_id, "Set gain to 5.", prior=prior, tools=tuple(tools))
    await live.engine.settled()
    assert ready(rollouts, system) == []
    assert len(rollouts._ready) == before


async def test_tools_that_the_bank_has_no_tasks_for_are_nothing_to_prepare(live: Live, rollouts: RolloutStore) -> None:
    """Another client's tools would be answered with questions of chats."""
    others = [tool for tool in definitions() if tool["function"]["name"] != "read"]
    request = GenerateRequest("u", [begun("two"), {"role": "user", "content": "Go on."}], tools=others)
    assert not live.parts.foresight.notices(request)
    assert live.parts.foresight.notices(replace(request, tools=definitions()))
    live.parts.foresight.drop("u")
    assert "u" not in live.parts.foresight._noticed


async def test_a_person_who_is_erased_leaves_nothing_noticed(live: Live, rollouts: RolloutStore) -> None:
    """A session's system message names the person's folder."""
    user_id = await live.person()
    request = GenerateRequest(user_id, [begun("three"), {"role": "user", "content": "Go on."}], tools=definitions())
    assert live.parts.foresight.notices(request)
    await live.engine.forget(user_id)
    assert user_id not in live.parts.foresight._noticed


async def test_a_start_makes_what_the_first_lesson_takes(live: Live) -> None:
    """Answers to neutral prompts, and to as many others as a wish is tried on."""
    rollouts = live.parts.context.rollouts
    rollouts.drop(ZERO_ADAPTER.name)
    await live.parts.foresight.first()
    assert rollouts._anchors
    assert not rollouts._unanswered
    assert len(rollouts._ready[ZERO_ADAPTER.name, ""]) > NUM_OTHERS
