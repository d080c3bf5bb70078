"""bot.http.openai.wait_sign: a stream that waits says so, and every call with a key counts for the key."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from openai import AsyncOpenAI

from bot.http.openai import wait_sign
from storage.people import api_keys
from storage.tables import ApiKey
from tests.bot.conftest import Heed, StartHeed
from tests.patience import until

CHAT = "/v1/chat/completions"
ASKED: dict[str, Any] = {"user": "ben", "messages": [{"role": "user", "content": "bees"}]}


@pytest.fixture(autouse=True)
def no_delay(monkeypatch: pytest.MonkeyPatch) -> None:
    """Show the sign as soon as a call waits; a new key holds at once."""
    monkeypatch.setattr(wait_sign, "SHOWN_AFTER_S", 0.0)
    monkeypatch.setattr("bot.access.api_keys.ANY_EVERY_S", 0.0)


def num_waiting(heed: Heed) -> Callable[[], bool]:
    """Return a check that a call waits for its place."""
    return lambda: heed.core.metrics.waiting._value.get() == 1


async def test_a_stream_that_waits_says_how_many_are_before_it(start_heed: StartHeed) -> None:
    """The comments come before the first piece, which comes once a place is free."""
    heed = await start_heed(http={"max_streams": 1})
    async with heed.core.gateway._places.place("someone", 1.0):
        response = await heed.client.post(CHAT, json={**ASKED, "stream": True})
        assert (await response.content.readuntil(b"\n\n")) == b": waiting, 0 before you\n\n"
    rest = (await response.content.read()).decode()
    assert rest.startswith("data: {")
    assert rest.endswith("data: [DONE]\n\n")


async def test_openais_client_reads_past_the_sign(start_heed: StartHeed) -> None:
    """It gets the pieces and nothing else."""
    heed = await start_heed(http={"max_streams": 1})
    async with heed.core.gateway._places.place("someone", 1.0):
        client = AsyncOpenAI(base_url=str(heed.client.make_url("/v1")), api_key="none", max_retries=0)
        stream = await client.chat.completions.create(model="heed", stream=True, **ASKED)  # begins with the comment
        assert heed.core.metrics.waiting._value.get() == 1
    text = "".join([chunk.choices[0].delta.content or "" async for chunk in stream])
    assert text.startswith("You asked about bees.")
    await client.close()


async def test_a_wait_that_ends_badly_is_told_in_the_stream(start_heed: StartHeed) -> None:
    """Once the sign is there the error body goes into the stream."""
    heed = await start_heed(http={"max_streams": 1}, chat={"stream_timeout_s": 0.2})
    async with heed.core.gateway._places.place("someone", 1.0):
        response = await heed.client.post(CHAT, json={**ASKED, "stream": True})
        words = (await response.content.read()).decode()
    assert (response.status, words.split("\n\n")[0]) == (200, ": waiting, 0 before you")
    assert "rate_limit_exceeded" in words
    assert "[DONE]" not in words


async def test_a_short_wait_is_refused_as_any_other_call(
    start_heed: StartHeed, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before the sign is due a refusal has its status."""
    monkeypatch.setattr(wait_sign, "SHOWN_AFTER_S", 60.0)
    heed = await start_heed(http={"max_streams": 1}, chat={"stream_timeout_s": 0.2})
    async with heed.core.gateway._places.place("someone", 1.0):
        status, answer = await heed.post(CHAT, {**ASKED, "stream": True})
    assert (status, answer["error"]["code"]) == (429, "rate_limit_exceeded")


async def test_who_leaves_while_waiting_is_forgotten(start_heed: StartHeed) -> None:
    """Neither a place nor a sign is left behind."""
    heed = await start_heed(http={"max_streams": 1})
    async with heed.core.gateway._places.place("someone", 1.0):
        response = await heed.client.post(CHAT, json={**ASKED, "stream": True})
        await response.content.readuntil(b"\n\n")
        response.close()
    await until(lambda: heed.core.gateway.num_streams == 0)
    await until(lambda: "sign of a wait" not in {task.get_name() for task in asyncio.all_tasks()})


async def test_every_answer_counts_for_the_key_that_asks_for_it(start_heed: StartHeed) -> None:
    """A key with all of its places taken waits in every call that has an answer written, for whomever it speaks."""
    heed = await start_heed(http={"max_streams": 3, "max_streams_each": 1})
    headers = await key_of(heed, "program")
    ids = [(await heed.post(CHAT, {**ASKED, "heed": {"chat": "web"}}, headers=headers))[1]["id"] for _ in range(2)]
    _, session = await heed.post("/api/sessions?user=ben", {}, headers=headers)
    about = {"user": "ben", "completion_id": ids[-1], "kind": "correction", "text": "too long", "retry": True}
    calls: list[tuple[str, dict[str, Any]]] = [
        (CHAT, ASKED),
        (CHAT, {"user": "ben", "heed": {"regenerate": ids[0]}}),
        ("/v1/completions", {"user": "ben", "prompt": "bees"}),
        ("/v1/feedback", about),
        ("/v1/users/ben/commands", {"text": "/retry"}),
        ("/v1/users/ben/commands", {"text": "/feedback no emoji"}),
        (f"/api/sessions/{session['id']}/prompt?user=ben", {"text": "bees"}),
        (f"/api/sessions/{session['id']}/feedback?user=ben", {"kind": "revise", "text": "no question"}),
    ]
    for path, body in calls:
        async with heed.core.gateway._places.place("key program", 1.0):
            call = asyncio.create_task(heed.post(path, body, headers=headers))
            await until(num_waiting(heed))
            assert heed.core.gateway.num_streams == 1, path
        assert (await call)[0] == 200, path


async def test_a_key_leaves_room_for_what_comes_after_it_on_the_same_connection(start_heed: StartHeed) -> None:
    """The owner of a place is the caller of this call, not of the one before."""
    heed = await start_heed(http={"max_streams": 3, "max_streams_each": 1})
    first, second = await key_of(heed, "program"), await key_of(heed, "another")
    async with heed.core.gateway._places.place("key program", 1.0):
        waits = asyncio.create_task(heed.post(CHAT, ASKED, headers=first))
        await until(num_waiting(heed))
        assert (await heed.post(CHAT, ASKED, headers=second))[0] == 200
    assert (await waits)[0] == 200


async def key_of(heed: Heed, account: str) -> dict[str, str]:
    """Return the header with a new key."""
    token = api_keys.new_token()
    row = ApiKey(account=account, sha256=api_keys.digest(token), scopes=["chat", "feedback", "adapters", "person"])
    await heed.core.database.write(lambda s: api_keys.add(s, row))
    return {"Authorization": f"Bearer {token}"}
