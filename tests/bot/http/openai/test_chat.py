"""bot.http.openai.chat: OpenAI's chat calls, with true streaming."""

import asyncio
import json
from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import replace
from typing import Any, cast

import pytest

from bot.http.openai.chat import PIECE_INTERVAL_S, interleave, paced
from bot.http.protocol import bodies
from engine.errors import ConversationRefused, EngineRestarting, PromptTooLongError, RequestRefused
from engine.requests import Delta, GenerateResult, Sampling
from tests.bot.conftest import Heed, text_of
from tests.patience import until

CHAT = "/v1/chat/completions"


def body(text: str = "bees", **fields: Any) -> dict[str, Any]:
    """Return a chat call with one message."""
    return {"messages": [{"role": "user", "content": text}], **fields}


async def stream(heed: Heed, **fields: Any) -> list[Any]:
    """Return the parsed events of a streamed call; the last one is "[DONE]"."""
    response = await heed.client.post("/v1/chat/completions", json=body(stream=True, **fields))
    assert response.status == 200, await response.text()
    assert response.headers["Content-Type"] == "text/event-stream"
    lines = (await response.text()).split("\n\n")
    events = [line.removeprefix("data: ") for line in lines if line]
    return [event if event == "[DONE]" else json.loads(event) for event in events]


async def test_an_answer_is_a_stored_turn(heed: Heed) -> None:
    """The response's id is the completion's, and its counts are the stored token ids'."""
    answer = await heed.ask("bees", user="ana")
    _, export = await heed.get("/v1/users/ana/export")
    (stored,) = export["completions"]
    assert (stored["id"], stored["text"]) == (answer["id"], text_of(answer))
    assert answer["usage"]["completion_tokens"] == len(stored["completion_token_ids"])
    assert answer["heed"]["adapter_version"] == 0


async def test_a_stream_has_openais_form(heed: Heed) -> None:
    """Role first, then pieces, then the reason, usage on request, [DONE]; the pieces are the stored text."""
    events = await stream(heed, stream_options={"include_usage": True})
    assert events[-1] == "[DONE]"
    chunks = events[:-1]
    assert chunks[0]["choices"][0]["delta"] == {"role": "assistant", "content": ""}
    assert {chunk["id"] for chunk in chunks} == {chunks[0]["id"]}
    assert chunks[-2]["choices"][0]["finish_reason"] == "stop"
    assert chunks[-1]["choices"] == []
    text = "".join(chunk["choices"][0]["delta"].get("content", "") for chunk in chunks[:-1])
    _, export = await heed.get("/v1/users/local/export")
    assert export["completions"][0]["text"] == text
    assert chunks[-1]["usage"]["completion_tokens"] == len(export["completions"][0]["completion_token_ids"])


async def test_pieces_come_while_the_answer_is_written(heed: Heed) -> None:
    """The first piece arrives long before the last: nothing collects the stream on its way."""
    heed.engine.token_delay_s = 0.03
    response = await heed.client.post(CHAT, json=body(stream=True))
    loop = asyncio.get_running_loop()
    arrivals = [loop.time() async for _ in response.content]
    assert arrivals[-1] - arrivals[0] > 0.3


async def test_the_turn_is_stored_before_the_last_piece(heed: Heed) -> None:
    """Feedback on an answer works the moment its stream has ended."""
    events = await stream(heed)
    assert (await heed.correct(events[0]["id"], "too long"))["status"] == "learned"


async def test_a_client_that_leaves_ends_its_generation(heed: Heed) -> None:
    """A stream whose client is gone is aborted in the engine, and nothing of it is stored."""
    heed.engine.token_delay_s = 0.05
    response = await heed.client.post(CHAT, json=body(stream=True))
    await response.content.readline()
    response.close()
    await until(lambda: heed.engine.num_aborted)
    assert heed.engine.num_aborted == 1
    assert (await heed.get("/v1/users/local/export"))[1]["completions"] == []


async def test_a_client_that_leaves_a_plain_call_ends_its_generation(heed: Heed) -> None:
    """A call without streaming is aborted as well if its client disconnects."""
    heed.engine.token_delay_s = 0.05
    call = asyncio.create_task(heed.post(CHAT, body()))
    await until(lambda: heed.engine.requests)
    call.cancel()
    await until(lambda: heed.engine.num_aborted)
    assert heed.engine.num_aborted == 1


async def test_several_choices_share_the_id(heed: Heed) -> None:
    """n answers have one id and an index each; each is stored and can be corrected by its index."""
    answer = await heed.ask("bees", n=3, temperature=1.0, seed=1)
    assert [choice["index"] for choice in answer["choices"]] == [0, 1, 2]
    assert len({choice["message"]["content"] for choice in answer["choices"]}) == 3
    learned = await heed.correct(answer["id"], "too long", index=2, retry=True)
    assert learned["retry"]["retry_of"] == f"{answer['id']}.2"


async def test_several_choices_stream_together(heed: Heed) -> None:
    """Each choice of a stream has its pieces and its end."""
    events = await stream(heed, n=2, temperature=1.0)
    ended = [c["choices"][0]["index"] for c in events[:-1] if c["choices"][0]["finish_reason"]]
    assert sorted(ended) == [0, 1]


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"temperature": 0.5, "top_p": 0.9, "seed": 3, "max_tokens": 5}, (0.5, 0.9, 3, 5, ())),
        ({"max_completion_tokens": 4, "stop": "x"}, (0.0, 1.0, None, 4, ("x",))),
        ({"stop": ["a", "b"]}, (0.0, 1.0, None, 1024, ("a", "b"))),
    ],
)
async def test_sampling_reaches_the_engine(heed: Heed, fields: dict[str, Any], expected: tuple[Any, ...]) -> None:
    """What the body says is how the engine samples; the rest is the setting's."""
    await heed.ask("bees", **fields)
    used = heed.engine.requests[-1].sampling
    assert (used.temperature, used.top_p, used.seed, used.max_tokens, used.stop) == expected


async def test_the_models_own_sampling_holds_where_a_call_names_nothing(heed: Heed) -> None:
    """What the body says wins, one value at a time, also values that only vLLM's own server has."""
    heed.engine.sampling = own = Sampling(0.6, 0.95, top_k=20, repetition_penalty=1.05)
    await heed.ask("bees")
    assert heed.engine.requests[-1].sampling == replace(own, max_tokens=1024)
    await heed.ask("bees", temperature=0, top_k=3, min_p=0.1, repetition_penalty=1.5)
    used = heed.engine.requests[-1].sampling
    assert used == replace(own, temperature=0.0, top_k=3, min_p=0.1, repetition_penalty=1.5, max_tokens=1024)


async def test_penalties_biases_and_the_form_reach_the_engine(heed: Heed) -> None:
    """Nothing of what a call asks for is ignored."""
    schema = {"type": "object", "properties": {"a": {"type": "string"}}}
    wanted = {"type": "json_schema", "json_schema": {"name": "a", "schema": schema}}
    await heed.ask("bees", frequency_penalty=0.5, presence_penalty=-1, logit_bias={"7": -100}, response_format=wanted)
    used = heed.engine.requests[-1].sampling
    assert (used.frequency_penalty, used.presence_penalty, used.logit_bias) == (0.5, -1, {"7": -100})
    assert used.json_schema == schema
    await heed.ask("bees", response_format={"type": "json_object"})
    assert heed.engine.requests[-1].sampling.json_schema == {"type": "object"}


async def test_max_tokens_and_stop_end_an_answer(heed: Heed) -> None:
    """finish_reason tells if the limit or a stop text ended the answer.

    One that only repeated itself has ended as far as OpenAI's clients know; heed's own field has its own word.
    """
    assert (await heed.ask("bees", max_tokens=3))["choices"][0]["finish_reason"] == "length"
    heed.engine.ends_as = "repetition"
    repeated = await heed.ask("bees")
    assert (repeated["choices"][0]["finish_reason"], repeated["heed"]["finish_reason"]) == ("stop", "repetition")
    heed.engine.ends_as = ""
    assert "subject" not in text_of(await heed.ask("bees", stop=["subject"]))


async def test_logprobs_have_the_text_and_the_bytes_of_each_token(heed: Heed) -> None:
    """There is one entry per token, with its text, its bytes and the requested alternatives."""
    answer = await heed.ask("bees", logprobs=True, top_logprobs=2)
    entries = answer["choices"][0]["logprobs"]["content"]
    assert len(entries) == answer["usage"]["completion_tokens"]
    assert "".join(entry["token"] for entry in entries) == text_of(answer)
    assert bytes(byte for entry in entries for byte in entry["bytes"]).decode() == text_of(answer)
    named = await heed.ask("bees", logprobs=True, return_tokens_as_token_ids=True)
    assert named["choices"][0]["logprobs"]["content"][0]["token"].startswith("token_id:")
    assert len(entries[5]["top_logprobs"]) == 2
    streamed = await stream(heed, logprobs=True)
    assert sum(len((c["choices"][0]["logprobs"] or {"content": []})["content"]) for c in streamed[:-1]) == len(entries)


async def test_the_base_model_is_untouched_by_lessons(heed: Heed) -> None:
    """The model heed-base answers as if nothing had been learned."""
    before = await heed.ask("bees")
    await heed.correct(before["id"], "too long")
    assert text_of(await heed.ask("bees", model="heed-base")) == text_of(before)
    assert text_of(await heed.ask("bees")) != text_of(before)


async def test_notes_can_be_left_out(heed: Heed) -> None:
    """With heed.notes: off the weights alone answer."""
    await heed.post("/v1/feedback", {"kind": "note", "text": "lowercase please"})
    assert text_of(await heed.ask("bees")).islower()
    assert not text_of(await heed.ask("bees", heed={"notes": "off"})).islower()


async def test_heed_keeps_a_conversation(heed: Heed) -> None:
    """With heed.chat only the new message is sent, and the model sees the ones before."""
    for text in ("bees", "wasps"):
        await heed.ask(text, heed={"chat": "web"})
    assert [m["content"] for m in heed.engine.requests[-1].messages][::2] == ["bees", "wasps"]


async def test_an_answer_is_given_once_more(heed: Heed) -> None:
    """heed.regenerate answers the same question differently, in the old answer's place."""
    first = await heed.ask("bees", heed={"chat": "web"})
    again = await heed.ask("", heed={"regenerate": first["id"]}, messages=[])
    assert text_of(again) != text_of(first)
    _, history = await heed.get("/v1/users/local/history")
    assert [entry["completion_id"] for entry in history["data"][0]] == [first["id"], again["id"]]


async def test_parts_and_developer_messages_are_understood(heed: Heed) -> None:
    """Content as a list of text parts, and the developer role, as OpenAI's newer clients send them."""
    messages = [
        {"role": "developer", "content": "Be brief."},
        {"role": "user", "content": [{"type": "text", "text": "be"}, {"type": "text", "text": "es"}]},
    ]
    await heed.ask("", messages=messages)
    assert heed.engine.requests[-1].messages == [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "bees"},
    ]


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({"messages": []}, "messages"),
        ({"messages": [{"role": "user", "content": " "}]}, "messages"),
        ({"messages": [{"role": "user", "content": "x" * 16_001}]}, "messages"),
        ({"messages": [{"role": "user", "content": "a\x00b"}]}, "messages"),
        ({"messages": [{"role": "assistant", "content": "x"}]}, "messages"),
        ({"messages": [{"role": "robot", "content": "x"}]}, "messages.0.role"),
        ({"messages": [{"role": "user", "content": [{"type": "image_url"}]}]}, "messages.0.content.0"),
        ({"temperature": 3}, "temperature"),
        ({"temperature": "hot"}, "temperature"),
        ({"top_p": 0}, "top_p"),
        ({"max_tokens": 0}, "max_tokens"),
        ({"n": 9}, "n"),
        ({"n": 2, "heed": {"chat": "web"}}, "n"),
        ({"stop": [""]}, "stop"),
        ({"top_logprobs": 21}, "top_logprobs"),
        ({"frequency_penalty": 3}, "frequency_penalty"),
        ({"presence_penalty": "a"}, "presence_penalty"),
        ({"logit_bias": {"bees": 1}}, "logit_bias"),
        ({"logit_bias": {"7": 101}}, "logit_bias.7"),
        ({"response_format": {"type": "xml"}}, "response_format.type"),
        ({"response_format": {"type": "json_schema"}}, "response_format.json_schema"),
        ({"messages": [{"role": "user"}]}, "messages.0"),
        ({"seed": 2**80}, "seed"),
        ({"user": "x" * 65}, "user"),
        ({"user": "a\u202eb"}, "user"),
        ({"heed": {"notes": "maybe"}}, "heed.notes"),
        (
            {"heed": {"chat": "web"}, "messages": [{"role": "user", "content": "a"}, {"role": "user", "content": "b"}]},
            "messages",
        ),
    ],
)
async def test_a_wrong_field_is_named_and_changes_nothing(heed: Heed, fields: dict[str, Any], param: str) -> None:
    """400, the field's name in the error body, no call to the engine, no row."""
    status, answer = await heed.post(CHAT, {**body(), **fields})
    assert status == 400
    assert answer["error"]["param"].startswith(param)
    assert (answer["error"]["type"], answer["error"]["code"]) == ("invalid_request_error", "invalid_value")
    assert heed.engine.requests == []


@pytest.mark.parametrize("kind", ["image_url", "input_audio", "file"])
async def test_what_is_no_text_is_refused_in_words(heed: Heed, kind: str) -> None:
    """The refusal says that heed reads words, and names the part."""
    content = [{"type": "text", "text": "See:"}, {"type": kind, kind: {}}]
    status, answer = await heed.post(CHAT, {"messages": [{"role": "user", "content": content}]})
    assert (status, answer["error"]["param"]) == (400, "messages.0.content.1")
    assert "heed reads words" in answer["error"]["message"]


@pytest.mark.parametrize("path", [CHAT, "/v1/completions", "/v1/score"])
async def test_an_unknown_model_is_not_found(heed: Heed, path: str) -> None:
    """Every call to a model that is not there is 404 with OpenAI's code for it."""
    status, answer = await heed.post(path, body(model="gpt-4", prompt="bees", completion="x"))
    assert (status, answer["error"]["param"], answer["error"]["code"]) == (404, "model", "model_not_found")


async def test_null_means_not_given(heed: Heed) -> None:
    """A field with null is one that was left out, whatever its type; so is an empty model's name."""
    names = bodies.ChatBody.model_fields.keys() - {"messages", "user"}
    answer = await heed.ask("bees", **dict.fromkeys(names), audio=None)
    assert text_of(answer) == text_of(await heed.ask("bees", model=""))
    assert answer["model"] == "heed"


async def test_a_prompt_that_is_too_long_has_openais_code(heed: Heed) -> None:
    """Programs that shorten their conversation look for context_length_exceeded."""
    heed.engine.failure = PromptTooLongError("shorten it")
    status, answer = await heed.post(CHAT, body())
    assert (status, answer["error"]["code"], answer["error"]["param"]) == (400, "context_length_exceeded", "messages")


async def test_a_request_that_vllm_refuses_names_its_field(heed: Heed) -> None:
    """What the engine refuses is 400 with the field."""
    heed.engine.failure = RequestRefused("The schema cannot be used.", "response_format")
    status, answer = await heed.post(CHAT, body())
    assert (status, answer["error"]["param"]) == (400, "response_format")


async def test_a_conversation_that_the_chat_template_refuses_names_the_messages(heed: Heed) -> None:
    """In one piece and as a stream: 400, with the template's words and what to do."""
    for stream in (False, True):
        heed.engine.failure = ConversationRefused("Conversation roles must alternate.")
        status, answer = await heed.post(CHAT, body(stream=stream))
        error = answer["error"]
        assert (status, error["type"], error["param"]) == (400, "invalid_request_error", "messages")
        assert "refuses this conversation: Conversation roles must alternate. Change" in error["message"]


async def test_half_a_surrogate_pair_is_refused(heed: Heed) -> None:
    """A lone surrogate, which JSON can carry, is refused."""
    raw = json.dumps(body("\ud800"))
    response = await heed.client.post(CHAT, data=raw, headers={"Content-Type": "application/json"})
    assert response.status == 400


async def test_an_unknown_completion_cannot_be_given_again(heed: Heed) -> None:
    """An unknown completion and another person's are 404."""
    other = await heed.ask("bees", user="bob")
    for completion_id in ("cmpl-0", other["id"]):
        status, answer = await heed.post(CHAT, {"heed": {"regenerate": completion_id}, "user": "ana"})
        assert (status, answer["error"]["type"]) == (404, "not_found_error")


async def test_an_error_before_the_first_piece_is_an_ordinary_one(heed: Heed) -> None:
    """A stream that cannot begin answers with a status, not with an event."""
    for failure, status in ((PromptTooLongError("shorten it"), 400), (EngineRestarting("soon"), 503)):
        heed.engine.failure = failure
        got, answer = await heed.post(CHAT, body(stream=True))
        assert (got, answer["error"]["message"]) == (status, str(failure))


async def test_an_error_in_mid_stream_is_an_event(heed: Heed, monkeypatch: pytest.MonkeyPatch) -> None:
    """Once pieces went out, the error body goes into the stream, and there is no [DONE]."""

    async def fails(*_: Any) -> None:
        raise EngineRestarting("the model process died")

    monkeypatch.setattr(heed.core.gateway, "_store", fails)
    events = await stream(heed)
    assert events[-1]["error"]["message"] == "the model process died"


async def test_thoughts_are_told_from_the_answer(heed: Heed) -> None:
    """Reasoning comes as reasoning_content, whole and streamed; the tokens are of both."""
    plain = text_of(await heed.ask("bees"))
    heed.engine.thoughts = "They ask about bees."
    answer = await heed.ask("bees")
    message = answer["choices"][0]["message"]
    assert (message["reasoning_content"], message["content"]) == (heed.engine.thoughts, plain)
    deltas = [chunk["choices"][0]["delta"] for chunk in (await stream(heed))[:-1]]
    assert "".join(delta.get("reasoning_content", "") for delta in deltas) == heed.engine.thoughts
    assert "".join(delta.get("content", "") for delta in deltas) == plain
    stored = (await heed.get("/v1/users/local/export"))[1]["completions"]
    assert [row["text"] for row in stored] == [plain] * 3
    assert len(stored[1]["completion_token_ids"]) == len(stored[0]["completion_token_ids"]) + 4


async def test_without_thoughts_there_is_no_field_for_them(heed: Heed) -> None:
    """Without reasoning the field is left out."""
    assert set((await heed.ask("bees"))["choices"][0]["message"]) == {"role", "content"}


async def test_the_models_are_listed(heed: Heed) -> None:
    """heed and heed-base are listed."""
    _, models = await heed.get("/v1/models")
    assert [model["id"] for model in models["data"]] == ["heed", "heed-base"]


async def test_interleaved_streams_are_closed_together() -> None:
    """Leaving the merged stream closes every stream in it, also the silent one."""
    closed: list[str] = []

    async def numbers(name: str, delay_s: float) -> Any:
        try:
            while True:
                await asyncio.sleep(delay_s)
                yield name
        finally:
            closed.append(name)

    merged = interleave([numbers("quick", 0), numbers("silent", 60)])
    assert await anext(merged) == (0, "quick")
    await merged.aclose()
    assert sorted(closed) == ["quick", "silent"]


async def test_an_error_in_one_stream_ends_them_all() -> None:
    """The merged stream raises it."""

    async def fails() -> Any:
        raise ValueError("no")
        yield

    async def waits() -> Any:
        await asyncio.sleep(60)
        yield

    with pytest.raises(ValueError, match="no"):
        async for _ in interleave([waits(), fails()]):
            pass


async def test_pieces_come_at_a_readable_pace(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first piece comes at once, each later one after a pause; a client that leaves early closes the stream."""
    paused: list[float] = []
    closed: list[bool] = []

    async def pause(seconds: float) -> None:
        paused.append(seconds)

    async def three() -> AsyncGenerator[Delta, None]:
        try:
            for text in ("a", "b"):
                yield Delta(text, [1], [0.0])
            yield Delta("c", [1], [0.0], result=cast("GenerateResult", object()))
        finally:
            closed.append(True)

    monkeypatch.setattr("bot.http.openai.chat.asyncio.sleep", pause)
    async with aclosing(paced(three())) as pieces:
        assert [piece.text async for piece in pieces] == ["a", "b", "c"]
    assert paused == [PIECE_INTERVAL_S] * 2
    async with aclosing(paced(three())) as pieces:
        assert (await anext(pieces)).text == "a"
    assert closed == [True, True]
