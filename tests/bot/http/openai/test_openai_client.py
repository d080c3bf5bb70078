"""OpenAI's own Python client, unchanged, against heed over a socket."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import openai
import pytest_asyncio
from openai.types.chat import ChatCompletionMessageParam

from bot.config import HttpSettings
from engine.errors import EngineRestarting
from tests.bot.conftest import Heed, StartHeed
from tests.patience import PATIENCE_S

BEES: list[ChatCompletionMessageParam] = [{"role": "user", "content": "bees"}]


def client_of(heed: Heed, api_key: str = "none is needed") -> openai.AsyncOpenAI:
    """Return a client with only an address and a key."""
    return openai.AsyncOpenAI(
        base_url=str(heed.client.make_url("/v1")), api_key=api_key, max_retries=0, timeout=PATIENCE_S
    )


@pytest_asyncio.fixture
async def client(heed: Heed) -> AsyncIterator[openai.AsyncOpenAI]:
    """Return a client of a heed that needs no key."""
    async with client_of(heed) as client:
        yield client


async def refusal(call: Any, kind: type[openai.APIStatusError]) -> openai.APIStatusError:
    """Return the error that the client raises."""
    try:
        await call
    except kind as error:
        return error
    raise AssertionError("it was not refused")


async def test_an_answer(client: openai.AsyncOpenAI) -> None:
    """An answer has text, usage, finish reason, model, and an id that is in the log."""
    answer = await client.chat.completions.create(model="heed", messages=BEES, temperature=0, seed=1, top_p=0.9)
    (choice,) = answer.choices
    assert choice.message.content is not None
    assert choice.message.content.startswith("You asked about bees")
    assert (choice.finish_reason, answer.model, answer.object) == ("stop", "heed", "chat.completion")
    assert answer.usage is not None
    assert answer.usage.total_tokens == answer.usage.prompt_tokens + answer.usage.completion_tokens > 0
    assert answer._request_id is not None
    assert answer._request_id.startswith("req_")


async def test_a_stream_is_the_same_answer_in_pieces(client: openai.AsyncOpenAI) -> None:
    """A stream has the same text in pieces, and ends with the usage if it was requested."""
    whole = await client.chat.completions.create(model="heed", messages=BEES)
    stream = await client.chat.completions.create(
        model="heed", messages=BEES, stream=True, stream_options={"include_usage": True}
    )
    chunks = [chunk async for chunk in stream]
    pieces = [choice.delta.content or "" for chunk in chunks for choice in chunk.choices]
    assert "".join(pieces) == whole.choices[0].message.content
    assert sum(bool(piece) for piece in pieces) > 3
    assert [c.finish_reason for chunk in chunks for c in chunk.choices if c.finish_reason] == ["stop"]
    assert chunks[-1].usage == whole.usage


async def test_the_clients_own_stream_helper_reads_along(client: openai.AsyncOpenAI) -> None:
    """The client's stream helper accepts and joins the pieces."""
    async with client.chat.completions.stream(model="heed", messages=BEES) as stream:
        kinds = {event.type async for event in stream}
        final = await stream.get_final_completion()
    assert {"chunk", "content.delta", "content.done"} <= kinds
    assert (final.choices[0].message.content or "").startswith("You asked about bees")


async def test_logprobs(client: openai.AsyncOpenAI) -> None:
    """Each token has an entry with the requested alternatives, whole and in a stream."""
    answer = await client.chat.completions.create(model="heed", messages=BEES, logprobs=True, top_logprobs=2)
    logprobs = answer.choices[0].logprobs
    assert logprobs is not None
    assert logprobs.content is not None
    assert answer.usage is not None
    assert len(logprobs.content) == answer.usage.completion_tokens
    assert all(entry.logprob <= 0 for entry in logprobs.content)
    stream = await client.chat.completions.create(model="heed", messages=BEES, logprobs=True, stream=True)
    entries = [
        entry.token
        async for chunk in stream
        for choice in chunk.choices
        if choice.logprobs is not None
        for entry in choice.logprobs.content or []
    ]
    assert entries == [entry.token for entry in logprobs.content]


async def test_several_choices_and_limits(client: openai.AsyncOpenAI) -> None:
    """n, max_tokens and stop work."""
    answer = await client.chat.completions.create(model="heed", messages=BEES, n=3, temperature=1.0)
    assert [choice.index for choice in answer.choices] == [0, 1, 2]
    short = await client.chat.completions.create(model="heed", messages=BEES, max_tokens=2)
    assert short.choices[0].finish_reason == "length"
    stopped = await client.chat.completions.create(model="heed", messages=BEES, stop=["bees"])
    assert "bees" not in (stopped.choices[0].message.content or "")


async def test_the_older_call(client: openai.AsyncOpenAI) -> None:
    """A prompt is answered like a message, whole and as a stream, with logprobs."""
    chat = await client.chat.completions.create(model="heed", messages=BEES)
    whole = await client.completions.create(model="heed", prompt="bees", logprobs=1)
    assert (whole.object, whole.choices[0].text) == ("text_completion", chat.choices[0].message.content)
    assert (whole.choices[0].finish_reason, whole.usage) == ("stop", chat.usage)
    logprobs = whole.choices[0].logprobs
    assert logprobs is not None
    assert whole.usage is not None
    assert len(logprobs.tokens or []) == len(logprobs.token_logprobs or []) == whole.usage.completion_tokens
    stream = await client.completions.create(model="heed", prompt=["bees"], stream=True)
    chunks = [chunk async for chunk in stream]
    assert "".join(choice.text for chunk in chunks for choice in chunk.choices) == whole.choices[0].text
    assert chunks[-1].choices[0].finish_reason == "stop"


async def test_a_program_that_leaves_a_stream_ends_its_generation(heed: Heed, client: openai.AsyncOpenAI) -> None:
    """A client that leaves a stream stops the engine, and nothing is stored."""
    heed.engine.token_delay_s = 0.05
    stream = await client.chat.completions.create(model="heed", messages=BEES, stream=True)
    await anext(aiter(stream))
    await stream.close()
    async with asyncio.timeout(PATIENCE_S):
        while not heed.engine.num_aborted:  # noqa: ASYNC110  the fake engine tells nobody
            await asyncio.sleep(0.01)
    assert (await heed.get("/v1/users/local/export"))[1]["completions"] == []


async def test_errors_are_the_clients_own_kinds(heed: Heed, client: openai.AsyncOpenAI) -> None:
    """Each error is one of the client's kinds, with the wrong field and the call's id."""
    wrong = await refusal(client.chat.completions.create(model="heed", messages=BEES, top_p=0), openai.BadRequestError)
    assert (wrong.param, wrong.type, wrong.code) == ("top_p", "invalid_request_error", "invalid_value")
    assert wrong.request_id is not None
    unknown = await refusal(client.chat.completions.create(model="gpt-5", messages=BEES), openai.NotFoundError)
    assert (unknown.param, unknown.code) == ("model", "model_not_found")
    none = await refusal(client.embeddings.create(model="heed", input="bees"), openai.NotFoundError)
    assert "heed makes no embeddings" in none.message
    heed.engine.failure = EngineRestarting("the model process died")
    await refusal(client.chat.completions.create(model="heed", messages=BEES), openai.InternalServerError)


async def test_models(client: openai.AsyncOpenAI) -> None:
    """The client can list the models and get one; an unknown one is an error."""
    assert [model.id async for model in client.models.list()] == ["heed", "heed-base"]
    assert (await client.models.retrieve("heed")).id == "heed"
    missing = await refusal(client.models.retrieve("gpt-5"), openai.NotFoundError)
    assert missing.param == "model"


async def test_a_key_is_a_person(start_heed: StartHeed) -> None:
    """The client's key decides the person, and a wrong one is refused."""
    heed = await start_heed(http=HttpSettings(api_keys={"ana": "sk-ana-0123456789abcdef"}))  # type: ignore[dict-item]
    async with client_of(heed, "sk-ana-0123456789abcdef") as ana:
        answer = await ana.chat.completions.create(model="heed", messages=BEES)
        assert answer.choices[0].message.content
    async with client_of(heed, "sk-somebody-else") as stranger:
        refused = await refusal(stranger.models.list(), openai.AuthenticationError)
        assert refused.code == "invalid_api_key"
