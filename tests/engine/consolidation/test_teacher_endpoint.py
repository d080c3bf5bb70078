"""Tests of the teacher endpoint over a real socket: a better answer, or an error with its remedy."""

import json
from typing import Any

import pytest

from engine.config import BetterAnswersConfig
from engine.consolidation.teacher_endpoint import Draft, Endpoint, draft
from engine.errors import TeacherAnswerInvalid, TeacherUnreachable
from tests.contract.teacher_server import KEY, MODEL, Fault, TeacherServer

ASKED = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Tell me about the koala"}]


def reply(content: Any, **fields: Any) -> bytes:
    """Return a reply of OpenAI's form."""
    return json.dumps({"choices": [{"message": {"content": content}, **fields}]}).encode()


def of(server: TeacherServer, **fields: Any) -> Endpoint:
    """Return heed's client of the server."""
    return Endpoint(BetterAnswersConfig(**server.settings(**fields)))


async def test_an_answer_comes_with_whom_it_is_from() -> None:
    """The request holds the conversation, the model's name and the key as a bearer; it is greedy and bounded."""
    async with TeacherServer(lambda _: " The koala lives in Australia. ") as server:
        endpoint = of(server, max_tokens=77)
        assert await endpoint.write(ASKED) == Draft("The koala lives in Australia.", is_ended=True)
        assert server.calls == [{"model": MODEL, "messages": ASKED, "temperature": 0, "max_tokens": 77}]
        assert endpoint.source == f"{MODEL} at 127.0.0.1"
        await endpoint.check()


async def test_an_answer_that_was_cut_says_so() -> None:
    """finish_reason "length" means that it ran into a limit."""
    async with TeacherServer() as server:
        server.finish_reason = "length"
        assert not (await of(server).write(ASKED)).is_ended


@pytest.mark.parametrize(
    ("fault", "words"),
    [
        (Fault(500), "status 500: try again later"),
        (Fault(429), "status 429: try again later"),
        (Fault(401), "HEED_CURRICULUM_API_KEY"),
        (Fault(404), "HEED_CURRICULUM_URL"),
        (Fault(307, location="http://127.0.0.1:9/"), "leads elsewhere"),
        (Fault(cuts=True), "cannot be reached"),
        (Fault(hangs=True), "HEED_CURRICULUM_TIMEOUT_S"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
async def test_an_endpoint_that_cannot_be_asked_is_named(fault: Fault, words: str) -> None:
    """The error is retryable and names the setting to check, but not the key."""
    async with TeacherServer() as server:
        server.fail(fault)
        with pytest.raises(TeacherUnreachable, match=words) as caught:
            await of(server, timeout_s=0.2 if fault.hangs else 30.0).write(ASKED)
        assert (caught.value.retryable, MODEL in str(caught.value), KEY in str(caught.value)) == (True, True, False)
        server._faults.clear()  # one who gives up soon may never have called
        assert (await of(server).write(ASKED)).text == "Yes."


async def test_nobody_listening_is_unreachable() -> None:
    """The port of an endpoint that is gone is unreachable."""
    async with TeacherServer() as server:
        gone = of(server)
    with pytest.raises(TeacherUnreachable, match="cannot be reached"):
        await gone.check()


@pytest.mark.parametrize(
    "body",
    [
        b"<html>hello</html>",
        b"",
        b"\xff\xfe",
        b"[]",
        b"null",
        b"{}",
        b"[" * 100_000,
        b'{"choices": []}',
        b'{"choices": ["x"]}',
        b'{"choices": [{"message": null}]}',
        reply(None),
        reply(""),
        reply("   "),
        reply("<think>only thoughts</think>"),
        reply(["a", "b"]),
        reply("a\x00b"),
        reply("a\ud800b"),
    ],
    ids=lambda body: repr(body[:24]),
)
async def test_rubbish_is_no_answer(body: bytes) -> None:
    """Any rubbish is named in the error, and nothing else happens."""
    async with TeacherServer() as server:
        server.fail(Fault(body=body))
        with pytest.raises(TeacherAnswerInvalid, match=MODEL):
            await of(server).write(ASKED)


async def test_an_endless_reply_is_read_to_its_limit() -> None:
    """The limit is a megabyte, or the one in the settings."""
    async with TeacherServer() as server:
        server.fail(Fault(body=b"x" * 5000))
        with pytest.raises(TeacherAnswerInvalid, match="more than 2000 bytes"):
            await of(server, max_reply_bytes=2000).write(ASKED)


def test_thoughts_are_no_part_of_an_answer() -> None:
    """A reasoning model's thoughts are cut off; its words about thinking are not."""
    assert draft({"choices": [{"message": {"content": "<think>hm\n</think>\nYes."}}]}).text == "Yes."
    assert draft({"choices": [{"message": {"content": "Use <think> </think>."}}]}).text == "Use <think> </think>."
