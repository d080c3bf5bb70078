"""The calls to a measured heed."""

import asyncio
import time

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from evals import client as calls
from evals.client import Client
from evals.errors import CallRefused, HeedUnreachable
from tests.evals.fake_heed import FakeHeed, serving

QUESTION = "Where does the alpaca live?"
WISH = "leave the emojis out"


async def test_an_answer_comes_with_its_id_and_version() -> None:
    """The id that later feedback points at is kept."""
    async with serving(FakeHeed()) as url, Client(url) as client:
        answer = await client.chat("ana", [{"role": "user", "content": QUESTION}])
        assert "alpaca" in answer.text
        assert (answer.completion_id, answer.adapter_version) == ("cmpl-1", 0)


async def test_questions_are_answered_in_their_order() -> None:
    """Side by side, but each answer at its question's place."""
    texts = ["Where does the alpaca live?", "What does the boa eat?", "How heavy is the alpaca?"]
    async with serving(FakeHeed()) as url, Client(url) as client:
        answers = [answer.text for answer in await client.ask("ana", texts)]
    assert ["boa" in text for text in answers] == [False, True, False]


async def test_no_more_questions_than_allowed_are_in_flight() -> None:
    """The limit is the server's batch, however many are asked."""
    running, most = 0, 0

    async def slow(_: web.Request) -> web.Response:
        nonlocal running, most
        running += 1
        most = max(most, running)
        await asyncio.sleep(0.02)
        running -= 1
        body = {"id": "c", "choices": [{"message": {"content": ""}}], "usage": {"completion_tokens": 0}}
        return web.json_response({**body, "heed": {"adapter_version": 0, "notes": []}})

    app = web.Application()
    app.add_routes([web.post("/v1/chat/completions", slow)])
    async with TestServer(app) as server, Client(str(server.make_url("")), parallel=3) as client:
        await client.ask("ana", [QUESTION] * 12)
    assert most == 3


async def test_a_correction_teaches_and_a_note_does_not_train() -> None:
    """Both go to the same call with their own kind; learning settings travel along."""
    fake = FakeHeed()
    async with serving(fake) as url, Client(url) as client:
        learned = await client.correct("ana", "cmpl-1", WISH, {"steps": 6})
        await client.note("ben", WISH)
        assert (learned["status"], learned["adapter_version"]) == ("learned", 1)
        assert [n["state"] for n in await client.notes("ben")] == ["in_prompt"]
        assert (fake.training, fake.user("ben").active) == ([{"steps": 6}], 0)


async def test_rolling_back_and_forgetting_reach_the_person() -> None:
    """A name with a slash is one person, too."""
    fake = FakeHeed()
    async with serving(fake) as url, Client(url) as client:
        await client.correct("a/b", "cmpl-1", WISH)
        await client.rollback("a/b", 0)
        assert fake.user("a/b").active == 0
        await client.forget("a/b")
        await client.forget("a/b")  # already forgotten
        assert fake.users == {}


async def test_a_stream_tells_when_each_piece_came() -> None:
    """One time per piece of text, in order, none for the end mark."""
    fake = FakeHeed()
    async with serving(fake) as url, Client(url) as client:
        before_s = time.perf_counter()
        times = [arrived_s async for arrived_s in client.stream("ana", QUESTION)]
        whole = await client.ask("ana", [QUESTION])
    assert len(times) == len(whole[0].text.split())
    assert before_s < times[0] <= times[-1]
    assert times == sorted(times)


async def test_a_refusal_carries_heeds_own_words() -> None:
    """The error body's message is what the measurement ends with."""
    async with serving(FakeHeed()) as url, Client(url) as client:
        with pytest.raises(CallRefused, match="not a wish"):
            await client.note("ana", "zzz")


async def test_nobody_there_is_unreachable() -> None:
    """A closed port is not ready, and a call to it says where it looked."""
    async with Client("http://127.0.0.1:9") as client:
        assert not await client.is_ready()
        with pytest.raises(HeedUnreachable, match="no heed answers at http://127"):
            await client.model()


async def test_something_else_there_is_not_heed() -> None:
    """A page that is not JSON is no heed."""

    async def page(_: web.Request) -> web.Response:
        return web.Response(text="<html>")

    app = web.Application()
    app.add_routes([web.get("/readyz", page)])
    async with TestServer(app) as server, Client(str(server.make_url(""))) as client:
        with pytest.raises(HeedUnreachable, match="is not heed"):
            await client.model()


def test_only_lines_with_text_are_pieces() -> None:
    """The role, the end mark and empty lines are none; an error in the stream is raised."""
    assert calls.piece_of(b'data: {"choices": [{"delta": {"content": "hi"}}]}\n') == "hi"
    assert calls.piece_of(b'data: {"choices": [{"delta": {"role": "assistant", "content": ""}}]}\n') == ""
    assert calls.piece_of(b'data: {"choices": []}\n') == ""
    assert calls.piece_of(b"data: [DONE]\n") == ""
    assert calls.piece_of(b": waiting, 3 before you\n") == ""
    assert calls.piece_of(b"\n") == ""
    with pytest.raises(CallRefused, match="gone"):
        calls.piece_of(b'data: {"error": {"message": "gone"}}\n')
