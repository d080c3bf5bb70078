"""OpenAI's own client and its helpers for tools and schemas, against a heed with the real vLLM and its grammars.

The model is random, so that whatever it writes in the right form was put there by a grammar.
"""

from collections.abc import AsyncIterator
from typing import Any, Literal, cast

import openai
import pytest
import pytest_asyncio
from aiohttp.test_utils import TestServer
from openai.types.chat import ChatCompletionMessageParam
from pydantic import BaseModel

from bot.config import Settings
from bot.core.core import Core
from bot.http.server import application
from bot.monitoring.metrics import Metrics
from engine.config import EngineConfig
from engine.engine import Engine
from storage.database import Database
from tests.patience import PATIENCE_S
from tests.tiny_model import HERMES_TEMPLATE, save_tiny_model

pytestmark = [pytest.mark.engine, pytest.mark.asyncio(loop_scope="session")]

BEES: list[ChatCompletionMessageParam] = [{"role": "user", "content": "bees"}]


class Weather(BaseModel):
    """The weather in a city."""

    city: Literal["Rome", "Oslo"]
    is_dry: bool


WEATHER = openai.pydantic_function_tool(Weather)
CALL = {"id": "call_1", "type": "function", "function": {"name": "Weather", "arguments": '{"city": "Rome"}'}}


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def client(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[openai.AsyncOpenAI]:
    """Return a client of a heed whose model writes calls as Hermes does."""
    folder = save_tiny_model(tmp_path_factory.mktemp("model"), chat_template=HERMES_TEMPLATE)
    data_dir = tmp_path_factory.mktemp("data")
    database = Database.open(data_dir)
    engine = Engine(EngineConfig(str(folder), data_dir), database)
    await engine.start()
    settings = Settings(model=str(folder), data_dir=data_dir)
    server = TestServer(application(Core.build(settings, database, engine, Metrics())))
    await server.start_server()
    address = str(server.make_url("/v1"))
    async with openai.AsyncOpenAI(base_url=address, api_key="-", max_retries=0, timeout=PATIENCE_S) as client:
        yield client
    await server.close()
    await engine.stop()
    await database.close()


async def test_parse_returns_what_the_schema_says(client: openai.AsyncOpenAI) -> None:
    """The client's parse() gets an answer that fits a Pydantic model, at any temperature."""
    for temperature in (0.0, 1.5):
        answer = await client.chat.completions.parse(
            model="heed", messages=BEES, response_format=Weather, temperature=temperature
        )
        assert isinstance(answer.choices[0].message.parsed, Weather)


async def test_json_mode_writes_an_object(client: openai.AsyncOpenAI) -> None:
    """An answer in JSON mode begins as an object; logprobs of what the grammar forbids are still JSON."""
    answer = await client.chat.completions.create(
        model="heed", messages=BEES, response_format={"type": "json_object"}, max_tokens=4, logprobs=True,
        top_logprobs=5,
    )  # fmt: skip
    choice = answer.choices[0]
    assert (choice.message.content or "").lstrip().startswith("{")
    assert choice.logprobs is not None
    entries = choice.logprobs.content or []
    assert bytes(byte for entry in entries for byte in entry.bytes or []).decode(errors="replace") == (
        choice.message.content
    )


@pytest.mark.parametrize("choice", ["required", {"type": "function", "function": {"name": "Weather"}}])
async def test_a_call_can_be_forced(client: openai.AsyncOpenAI, choice: Any) -> None:
    """parse() gets a call with the arguments parsed, and the finish reason for calls."""
    answer = await client.chat.completions.parse(
        model="heed", messages=BEES, tools=[WEATHER], tool_choice=choice, parallel_tool_calls=False, temperature=1.0
    )
    (call,) = answer.choices[0].message.tool_calls or []
    assert isinstance(call.function.parsed_arguments, Weather)
    assert (answer.choices[0].finish_reason, answer.choices[0].message.content) == ("tool_calls", None)


async def test_a_call_is_streamed_in_pieces(client: openai.AsyncOpenAI) -> None:
    """The client's stream helper joins the pieces of the arguments to a whole call."""
    async with client.chat.completions.stream(
        model="heed", messages=BEES, tools=[WEATHER], tool_choice="required", parallel_tool_calls=False
    ) as stream:
        kinds = [event.type async for event in stream]
        final = await stream.get_final_completion()
    assert kinds.count("tool_calls.function.arguments.delta") > 1
    assert kinds.count("tool_calls.function.arguments.done") == 1
    (call,) = final.choices[0].message.tool_calls or []
    assert isinstance(call.function.parsed_arguments, Weather)


async def test_the_round_trip_ends_with_an_answer(client: openai.AsyncOpenAI) -> None:
    """The call goes back to the model as it came, with the tool's result, and the model answers."""
    called = await client.chat.completions.create(
        model="heed", messages=BEES, tools=[WEATHER], tool_choice="required", parallel_tool_calls=False
    )
    message = called.choices[0].message
    (call,) = message.tool_calls or []
    said = cast(ChatCompletionMessageParam, message.model_dump(exclude_none=True))
    result: ChatCompletionMessageParam = {"role": "tool", "tool_call_id": call.id, "content": "rain"}
    answer = await client.chat.completions.create(
        model="heed", messages=[*BEES, said, result], tools=[WEATHER], max_tokens=5
    )
    assert answer.usage is not None
    assert called.usage is not None
    assert answer.usage.prompt_tokens > called.usage.prompt_tokens


async def test_a_denied_call_is_trained_on(client: openai.AsyncOpenAI) -> None:
    """The call is the corrected answer, behind the whole conversation: tools, an earlier call and its result."""
    update = await _update_after(client, "denier", "correction", "ask for Oslo first")
    assert update["steps"] > 0  # what random weights make of words is chance; the next test says what is learned


async def test_a_call_written_anew_is_learned(client: openai.AsyncOpenAI) -> None:
    """Shown the call that was wanted, the student comes nearer to the teacher, who has seen it."""
    right = '<tool_call>\n{"name": "Weather", "arguments": {"city": "Oslo", "is_dry": true}}\n</tool_call>'
    update = await _update_after(client, "rewriter", "ideal", right)
    assert update["divergence_after"] < update["divergence_before"]


async def test_a_free_model_writes_text(client: openai.AsyncOpenAI) -> None:
    """With tools and no need to call one, what is no call is the answer's text, whole and streamed alike."""
    asked: Any = {"model": "heed", "messages": BEES, "tools": [WEATHER], "max_tokens": 12, "temperature": 0}
    whole = await client.chat.completions.create(**asked)
    assert (whole.choices[0].finish_reason, whole.choices[0].message.tool_calls) == ("length", None)
    stream = await client.chat.completions.create(**asked, stream=True)
    pieces = [choice.delta.content or "" async for chunk in stream for choice in chunk.choices]
    assert "".join(pieces) == whole.choices[0].message.content


async def test_biases_and_penalties_change_the_answer(client: openai.AsyncOpenAI) -> None:
    """A forbidden first token is not written; a penalty keeps a greedy model from saying one thing again."""
    asked: Any = {"model": "heed", "messages": BEES, "max_tokens": 24, "temperature": 0, "logprobs": True}
    named = {"extra_body": {"return_tokens_as_token_ids": True}}
    plain = await client.chat.completions.create(**asked, **named)
    first = _tokens(plain)[0].removeprefix("token_id:")
    biased = await client.chat.completions.create(**asked, **named, logit_bias={first: -100})
    assert first not in [token.removeprefix("token_id:") for token in _tokens(biased)]
    for penalty in ({"frequency_penalty": 2}, {"presence_penalty": 2}, {"extra_body": {"repetition_penalty": 2}}):
        penalised = await client.chat.completions.create(**asked, **penalty)
        assert len(set(_tokens(penalised))) >= len(set(_tokens(plain)))


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({"logit_bias": {"999999": 1}}, "logit_bias"),
        ({"response_format": {"type": "json_schema", "json_schema": {"name": "a", "schema": {"type": "shape"}}}},
         "response_format"),
    ],
)  # fmt: skip
async def test_what_vllm_refuses_is_a_bad_request(client: openai.AsyncOpenAI, fields: Any, param: str) -> None:
    """The refusal names the field, and heed answers afterwards."""
    for is_streamed in (False, True):
        with pytest.raises(openai.BadRequestError) as refused:
            await client.chat.completions.create(model="heed", messages=BEES, stream=is_streamed, **fields)
        assert refused.value.param == param
    answer = await client.chat.completions.create(model="heed", messages=BEES, max_tokens=2)
    assert answer.choices[0].finish_reason == "length"


async def _update_after(client: openai.AsyncOpenAI, user: str, kind: str, text: str) -> dict[str, Any]:
    """Return the update after `user` said `text` of a call that followed another call and its result."""
    said = {"role": "assistant", "content": "", "tool_calls": [CALL]}
    asked: Any = [*BEES, said, {"role": "tool", "tool_call_id": CALL["id"], "content": "rain"}]
    called = await client.chat.completions.create(
        model="heed", messages=asked, tools=[WEATHER], tool_choice="required", user=user
    )
    assert called.choices[0].message.tool_calls
    feedback = {"completion_id": called.id, "user": user, "kind": kind, "text": text, "wait": True}
    given = cast(dict[str, Any], await client.post("/feedback", cast_to=object, body=feedback))
    assert given["status"] in ("learned", "rejected"), given  # what gates say of random weights is another matter
    return cast(dict[str, Any], given["update"])


def _tokens(answer: Any) -> list[str]:
    """Return the tokens of an answer with logprobs."""
    return [entry.token for entry in answer.choices[0].logprobs.content]
