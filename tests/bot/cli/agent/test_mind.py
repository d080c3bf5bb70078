"""bot.cli.agent.mind: answers and lessons of a running heed, over HTTP."""

import asyncio

import pytest

from bot.agent.state import CallCorrection
from bot.agent.tools import definitions
from bot.cli import client as clients
from bot.cli.agent import mind as minds
from bot.cli.agent.mind import HttpMind
from bot.cli.client import HeedClient
from bot.commands.texts import HOW_FAR
from bot.errors import ServerRefused, SessionTooLong
from engine.errors import PromptTooLongError
from tests.bot.agent.minds import piece
from tests.bot.conftest import Heed
from tests.patience import PATIENCE_S, until

ASKED = [{"role": "user", "content": "read a.txt"}]
CALL = piece("read", '{"path": "a.txt"}')


async def test_a_call_comes_whole_and_tools_are_told(heed: Heed, client: HeedClient) -> None:
    """With the id that feedback names it by."""
    heed.engine.calls = [CALL]
    answer = await HttpMind(client, print).answer(ASKED, definitions())
    assert answer.calls == [CALL]
    assert heed.engine.requests[-1].tools == definitions()
    assert answer.id.startswith("chatcmpl-") or answer.id


async def test_a_correction_is_learned(heed: Heed, client: HeedClient) -> None:
    """By the person's own adapter; the line is the terminal chat's."""
    mind = HttpMind(client, print)
    answer = await mind.answer(ASKED, definitions())
    lesson = await mind.teach(CallCorrection(answer.id, "read it first"))
    assert lesson.line.startswith("Learned: v1 in")
    assert [token for token, _ in lesson.heat]
    assert heed.engine.num_learned == 1


async def test_a_correction_may_reach_further_than_heed_thought(heed: Heed, client: HeedClient) -> None:
    """Where it is unsure it says so; what the person chooses is learned."""
    mind = HttpMind(client, print)
    answer = await mind.answer(ASKED, definitions())
    lesson = await mind.teach(CallCorrection(answer.id, "unsure, read it first"))
    assert (bool(lesson.unsure_of), lesson.version, HOW_FAR in lesson.line) == (True, None, False)
    anew = minds.lesson_of(await client.choose_always(lesson.unsure_of, 60.0))
    assert (anew.unsure_of, anew.version, heed.engine.num_learned) == ("", 1, 1)


async def test_a_yes_is_an_approved_answer(heed: Heed, client: HeedClient) -> None:
    """Nothing is trained."""
    mind = HttpMind(client, print)
    answer = await mind.answer(ASKED, definitions())
    await mind.approve(answer.id)
    (entry,) = (await client.get("/export"))["feedback"]
    assert (entry["kind"], heed.engine.num_learned) == ("approval", 0)


async def test_a_long_lesson_is_watched(heed: Heed, client: HeedClient, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its phases are told until it has ended."""
    monkeypatch.setattr(minds, "PATIENCE_S", 0.01)
    monkeypatch.setattr(clients, "LOOK_EVERY_S", 0.01)
    told = list[str]()
    mind = HttpMind(client, told.append)
    answer = await mind.answer(ASKED, definitions())
    heed.engine.learn_delay_s = 2 * PATIENCE_S
    lesson = asyncio.create_task(mind.teach(CallCorrection(answer.id, "read it first")))
    await until(lambda: told)
    heed.engine.finish_lessons()
    assert (await lesson).line.startswith("Learned: v1 in")


async def test_refusals_keep_their_kind(heed: Heed, client: HeedClient) -> None:
    """What does not fit is told apart from every other refusal."""
    mind = HttpMind(client, print)
    heed.engine.failure = PromptTooLongError(9000, 8192)
    with pytest.raises(SessionTooLong):
        await mind.answer(ASKED, definitions())
    heed.engine.skills = type(heed.engine.skills)(False, False, heed.engine.skills.token_bytes)
    with pytest.raises(ServerRefused, match="tools"):
        await mind.answer(ASKED, definitions())
