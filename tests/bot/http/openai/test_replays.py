"""bot.http.openai.replays: a chat call sent again with its idempotency key brings the same answer."""

import asyncio
from typing import Any

import pytest

from tests.bot.conftest import Heed, StartHeed, text_of
from tests.patience import until

CHAT, TEXT = "/v1/chat/completions", "/v1/completions"
KEY = {"Idempotency-Key": "once"}
BEES = [{"role": "user", "content": "bees"}]
CALL = {"id": "call_1", "type": "function", "function": {"name": "weather", "arguments": "{}"}}
WEATHER = {"type": "function", "function": {"name": "weather"}}


async def asked(to: Heed, headers: dict[str, str] = KEY, path: str = CHAT, **fields: Any) -> dict[str, Any]:
    """Return the answer to a call with a key, without the second it was sent at."""
    status, answer = await to.post(path, {"messages": BEES, "prompt": "bees", **fields}, headers=headers)
    assert status == 200, answer
    return {name: value for name, value in answer.items() if name != "created"}


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"n": 3, "temperature": 1.0, "seed": 1},
        {"logprobs": True},
        {"tools": [WEATHER]},
        {"path": TEXT},
        {"heed": {"chat": "web"}, "user": "ana"},
    ],
)
async def test_the_answer_is_given_again_whole(heed: Heed, fields: dict[str, Any]) -> None:
    """Text, thoughts, calls, logprobs, counts and ids are the same, and the model is asked once."""
    heed.engine.thoughts, heed.engine.calls = "They ask about bees.", [CALL]
    first = await asked(heed, **fields)
    num_asked = len(heed.engine.requests)
    assert await asked(heed, **fields) == first
    assert len(heed.engine.requests) == num_asked


async def test_it_is_given_again_after_a_restart(start_heed: StartHeed) -> None:
    """The answer is in storage."""
    first = await asked(await start_heed())
    again = await start_heed()
    assert await asked(again) == first
    assert again.engine.requests == []


async def test_a_stream_is_replayed_as_one(heed: Heed) -> None:
    """A call may be sent again as a stream; its pieces are the answer."""
    first = await asked(heed)
    response = await heed.client.post(CHAT, json={"messages": BEES, "stream": True}, headers=KEY)
    text = await response.text()
    assert text_of(first).split("?")[0] in text
    assert first["id"] in text
    assert text.endswith("data: [DONE]\n\n")
    assert len(heed.engine.requests) == 1


async def test_another_key_or_person_gets_another_answer(heed: Heed) -> None:
    """A key is the person's own."""
    ids = {
        (await asked(heed))["id"],
        (await asked(heed, {"Idempotency-Key": "twice"}))["id"],
        (await asked(heed, user="ana"))["id"],
    }
    assert len(ids) == 3


async def test_another_body_under_the_key_is_refused(heed: Heed) -> None:
    """The key names one call, also one of the two forms."""
    await asked(heed)
    for path, fields in ((CHAT, {"temperature": 1}), (TEXT, {})):
        status, refused = await heed.post(path, {"messages": BEES, "prompt": "bees", **fields}, headers=KEY)
        assert (status, refused["error"]["code"]) == (422, "idempotency_key_reused")
    assert len(heed.engine.requests) == 1


async def test_a_call_whose_client_left_is_answered_anew(heed: Heed) -> None:
    """Nothing is stored of it, so the next one writes the answer."""
    heed.engine.token_delay_s = 0.05
    response = await heed.client.post(CHAT, json={"messages": BEES, "stream": True}, headers=KEY)
    await response.content.readline()
    response.close()
    await until(lambda: heed.engine.num_aborted)
    heed.engine.token_delay_s = 0.0
    assert text_of(await asked(heed))


async def test_two_at_once_are_answered_once(heed: Heed) -> None:
    """The second is told to come back while the first is being answered, and gets its answer then."""
    heed.engine.token_delay_s = 0.05
    first = asyncio.create_task(asked(heed))
    await until(lambda: heed.engine.requests)
    status, refused = await heed.post(CHAT, {"messages": BEES}, headers=KEY)
    assert (status, refused["error"]["code"]) == (409, "idempotency_key_in_use")
    answer = await first
    assert await asked(heed) == answer
    assert len(heed.engine.requests) == 1


@pytest.mark.parametrize(
    ("headers", "fields", "param"),
    [
        ({"Idempotency-Key": ""}, {}, "Idempotency-Key"),
        ({"Idempotency-Key": "x" * 256}, {}, "Idempotency-Key"),
        (KEY, {"logprobs": True, "top_logprobs": 2}, "top_logprobs"),
    ],
)
async def test_what_cannot_be_given_again_is_refused(
    heed: Heed, headers: dict[str, str], fields: dict[str, Any], param: str
) -> None:
    """A key of the wrong length, and alternatives of tokens, which are not stored, are named."""
    status, answer = await heed.post(CHAT, {"messages": BEES, **fields}, headers=headers)
    assert (status, answer["error"]["param"]) == (400, param)
    assert heed.engine.requests == []
