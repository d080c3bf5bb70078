"""bot.cli.mcp.tools: heed's calls as another program's model makes them."""

import asyncio

import pytest

from bot.cli.client import HeedClient
from bot.cli.mcp import tools as offered
from bot.cli.mcp.tools import HeedTools, Training
from bot.errors import NoSuchTraining, ServerRefused
from tests.bot.conftest import Heed, StartHeed
from tests.patience import PATIENCE_S


@pytest.fixture
def tools(client: HeedClient) -> HeedTools:
    """Ana's tools."""
    return HeedTools(client)


async def test_an_answer_is_corrected_and_given_again(heed: Heed, tools: HeedTools) -> None:
    """By the person's own adapter; the answer carries what feedback needs."""
    answer = await tools.chat("bees")
    assert (answer.text.startswith("You asked about bees."), answer.adapter_version) == (True, 0)
    lesson = await tools.feedback(answer.completion_id, "too long", again=True)
    assert (lesson.status, lesson.text.startswith("Learned: v1 in")) == ("learned", True)
    assert lesson.again is not None
    assert (lesson.again.adapter_version, lesson.again.completion_id != answer.completion_id) == (1, True)
    assert heed.engine.num_learned == 1


async def test_a_good_answer_is_said_to_be_one(heed: Heed, tools: HeedTools) -> None:
    """Nothing is trained."""
    answer = await tools.chat("bees")
    lesson = await tools.feedback(answer.completion_id, kind="approval")
    assert (lesson.status, lesson.again, heed.engine.num_learned) == ("kept", None, 0)


async def test_conversations_are_kept_apart(tools: HeedTools) -> None:
    """Each with its turns and what was said about them, the oldest first."""
    first = await tools.chat("bees", "work")
    await tools.chat("wasps", "work")
    await tools.chat("ants")
    await tools.feedback(first.completion_id, "too long")
    assert [turn.question for turn in await tools.history()] == ["ants"]
    bees, wasps = await tools.history("work")
    assert (bees.question, bees.answer, bees.feedback) == ("bees", first, ["too long"])
    assert (wasps.question, wasps.feedback) == ("wasps", [])
    assert [turn.question for turn in await tools.history("work", 1)] == ["wasps"]


async def test_a_training_has_an_id_to_ask_by(tools: HeedTools, monkeypatch: pytest.MonkeyPatch) -> None:
    """It runs on by itself; only so many are remembered."""
    monkeypatch.setattr(offered, "KEPT_TRAININGS", 2)
    await tools.chat("bees")
    asked = await tools.train()
    assert (asked.status, asked.request_id[:3]) == ("training_requested", "tr-")
    async with asyncio.timeout(PATIENCE_S):
        while (found := await tools.training(asked.request_id)).status == "running":  # noqa: ASYNC110  heed's to say
            await asyncio.sleep(0.01)
    assert found.status in ("kept", "learned")
    assert found.text
    for _ in range(2):
        await tools.train()
    with pytest.raises(NoSuchTraining):
        await tools.training(asked.request_id)


async def test_a_training_that_takes_longer_runs(start_heed: StartHeed) -> None:
    """What heed did not wait for has not ended; the words say where its end can be seen."""
    heed = await start_heed(chat={"learn_timeout_s": 0.000_001})
    await heed.client.start_server()
    async with HeedClient(str(heed.client.make_url("/")), "ana") as client:
        found = await ended(HeedTools(client))
    assert (found.status, "adapter_version" in found.text, "`heed adapters`" in found.text) == ("running", True, True)


async def ended(tools: HeedTools) -> Training:
    """What is said in the end of a training."""
    await tools.chat("bees")
    asked = await tools.train()
    async with asyncio.timeout(PATIENCE_S):
        while not (found := await tools.training(asked.request_id)).text:  # noqa: ASYNC110  heed's to say
            await asyncio.sleep(0.01)
    return found


async def test_a_refusal_is_heeds_own(tools: HeedTools) -> None:
    """Another's answer, or none."""
    with pytest.raises(ServerRefused):
        await tools.feedback("chatcmpl-none", "too long")
