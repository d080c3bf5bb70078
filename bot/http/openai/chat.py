"""OpenAI's chat call: `POST /v1/chat/completions`, streamed token by token; embeddings are refused.

Invariants: the id of a response is the id of the stored completion (choices share it, told apart by index);
every choice is stored before its last piece is sent; the generations of a client that disconnects end.
"""

import asyncio
import json
import time
from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, TypeVar

from aiohttp import web

from bot.core.core import Core
from bot.core.gateway import Turn, check_text, choice_id
from bot.errors import InvalidField, NotFound
from bot.events import Author, Message, Place
from bot.http.api import feedback
from bot.http.openai import parameters, replays, responses
from bot.http.openai.models import asker
from bot.http.openai.tools import choice_of, tools_of
from bot.http.openai.wait_sign import WaitSign
from bot.http.protocol import bodies, messages
from bot.http.protocol.app_keys import CORE
from bot.http.protocol.auth import author, spend
from bot.http.protocol.errors import body_of
from bot.http.protocol.openapi import gives
from bot.http.protocol.responses import Stopped
from engine.requests import REPEATED, STOPPED, ChatMessage, Delta, GenerateResult, Sampling

T = TypeVar("T")
Json = dict[str, Any]

PIECE_INTERVAL_S = 0.04
LEAST_LOGPROB = -9999.0  # of a token that cannot be: JSON has no infinity
CHOSEN = (  # by the caller, else defaults
    "temperature", "top_p", "top_k", "min_p", "repetition_penalty", "frequency_penalty", "presence_penalty",
    "logit_bias", "seed",
)  # fmt: skip
ANSWERING = (404, 409, 504)  # refusals of every call that asks for an answer


@gives(None, refuses=(404,))
async def embeddings(_: web.Request) -> web.Response:
    """Refuse embeddings: heed's model only writes answers (`POST /v1/embeddings`)."""
    raise NotFound(messages.NO_EMBEDDINGS)


@gives(Stopped, asks=bodies.UserQuery)
async def stop(request: web.Request) -> web.Response:
    """End an answer that is being written; what there is is stored (`POST /v1/chat/completions/{id}/stop`)."""
    core = request.app[CORE]
    user = await core.gateway.known(author(request, bodies.query(request, bodies.UserQuery).user))
    return web.json_response(Stopped(stopped=core.gateway.stop(user.id, request.match_info["id"])))


@gives(
    responses.ChatCompletion,
    takes=bodies.ChatBody,
    streams=responses.ChatPiece,
    headers={feedback.KEY_HEADER: feedback.KEY},
    refuses=ANSWERING,
)
async def chat_completions(request: web.Request) -> web.StreamResponse:
    """Answer a conversation, whole or as a stream of events (`POST /v1/chat/completions`)."""
    core = request.app[CORE]
    body = await parameters.read(request, bodies.ChatBody)
    core.gateway.require_ready()
    turns = await turns_of(core, body, await asker(request, body))
    return await answered(request, ChatCall(core, body, replays.keyed(request, body, turns)))


async def answered(request: web.Request, call: "ChatCall") -> web.StreamResponse:
    """Return the response to a call: a stream of events, or everything at once."""
    sign = WaitSign(request)
    known = await replays.stored(call.core, call.turns)
    if len(known) < len(call.turns):
        await spend(request, "messages", len(call.turns) - len(known))
    streams = [
        replays.replayed(known[index])
        if index in known
        else call.core.gateway.stream(replace(turn, on_move=sign.move if call.body.stream else None))
        for index, turn in enumerate(call.turns)
    ]
    if call.body.stream:
        async with aclosing(interleave([paced(stream) for stream in streams])) as pieces:
            try:
                return await _stream(sign, call, pieces)
            finally:
                sign.close()
    async with aclosing(interleave(streams)) as pieces:
        async for index, delta in pieces:
            call.take(index, delta)
    return web.json_response(call.whole())


@dataclass
class ChatCall:
    """One chat call while it is answered: its request, and the pieces so far."""

    kind: ClassVar[str] = "chat.completion"
    piece_kind: ClassVar[str] = "chat.completion.chunk"

    core: Core
    body: bodies.ChatBody
    turns: list[Turn]
    created: int = field(default_factory=lambda: int(time.time()))
    results: dict[int, GenerateResult] = field(default_factory=dict)
    logprobs: dict[int, list[Json]] = field(default_factory=dict)

    @property
    def id(self) -> str:
        """The completion id that all choices share."""
        return self.turns[0].completion_id

    def take(self, index: int, delta: Delta) -> list[Json]:
        """Store a piece. Return its entries for OpenAI's `logprobs`."""
        if delta.result is not None:
            self.results[index] = delta.result
        entries = self._logprobs(delta) if self.body.logprobs else []
        self.logprobs.setdefault(index, []).extend(entries)
        return entries

    def whole(self) -> Json:
        """Return the response of a call that does not stream."""
        choices = [self.choice(index) for index in sorted(self.results)]
        head = self._head(self.kind)
        return {**head, "choices": choices, "usage": self.usage(), "heed": heed_info(self.results[0])}

    def choice(self, index: int) -> Json:
        """Return one finished choice."""
        result = self.results[index]
        words = {"content": result.said.strip() or None, "tool_calls": result.tool_calls}
        said = words if result.tool_calls else {"content": result.text}
        return {
            "index": index,
            "message": {"role": "assistant", **said, **_thoughts(result.reasoning)},
            "finish_reason": finish_reason(result),
            "logprobs": {"content": self.logprobs[index]} if self.body.logprobs else None,
        }

    def first_chunks(self) -> list[Json]:
        """Return the first pieces of a stream, which name the role."""
        opening = {"delta": {"role": "assistant", "content": ""}, "finish_reason": None, "logprobs": None}
        return [self._piece({"index": index, **opening}) for index in range(len(self.turns))]

    def chunk(self, index: int, delta: Delta, entries: list[Json]) -> Json:
        """Return one piece of a stream."""
        logprobs = {"content": entries} if entries else None
        words = {"content": delta.text} if delta.text or not (delta.reasoning or delta.tool_calls) else {}
        calls = {"tool_calls": delta.tool_calls} if delta.tool_calls else {}
        shown = {**_thoughts(delta.reasoning), **words, **calls}
        return self._piece({"index": index, "delta": shown, "finish_reason": None, "logprobs": logprobs})

    def last_chunk(self, index: int) -> Json:
        """Return the last piece of a choice, with its finish reason and heed's own fields."""
        result = self.results[index]
        end = {"index": index, "delta": {}, "finish_reason": finish_reason(result), "logprobs": None}
        return {**self._piece(end), "heed": heed_info(result)}

    def usage_chunk(self) -> Json:
        """Return the piece with the token counts."""
        return {**self._head(self.piece_kind), "choices": [], "usage": self.usage()}

    def usage(self) -> responses.Usage:
        """Return the token counts; the prompt is counted once, as OpenAI does."""
        first = self.results[0]
        prompt = len(first.prompt_token_ids)
        completion = sum(len(result.completion_token_ids) for result in self.results.values())
        return responses.Usage(
            prompt_tokens=prompt,
            completion_tokens=completion,
            total_tokens=prompt + completion,
            prompt_tokens_details={"cached_tokens": first.num_cached_tokens},
        )

    def _piece(self, choice: Json) -> Json:
        return {**self._head(self.piece_kind), "choices": [choice]}

    def _head(self, kind: str) -> Json:
        return {"id": self.id, "object": kind, "created": self.created, "model": self.body.model}

    def _logprobs(self, delta: Delta) -> list[Json]:
        tops: Sequence[dict[int, float]] = delta.top_logprobs or [{}] * len(delta.token_ids)
        entries = []
        for token_id, logprob, top in zip(delta.token_ids, delta.logprobs, tops, strict=True):
            ranked = sorted(top.items(), key=lambda item: -item[1])[: self.body.top_logprobs or 0]
            others = [self._token(other, value) for other, value in ranked]
            entries.append({**self._token(token_id, logprob), "top_logprobs": others})
        return entries

    def _token(self, token_id: int, logprob: float) -> responses.Token:
        content = self.core.engine.skills.token_bytes(token_id)
        is_named = self.body.return_tokens_as_token_ids
        return responses.Token(
            token=f"token_id:{token_id}" if is_named else content.decode(errors="replace"),
            logprob=max(logprob, LEAST_LOGPROB),
            bytes=list(content),
        )


def _thoughts(reasoning: str) -> responses.Thoughts:
    """Return the model's reasoning, if there is any, in the field that servers of reasoning models use."""
    return {"reasoning_content": reasoning} if reasoning else {}


def finish_reason(result: GenerateResult) -> str:
    """Return why an answer ended, in OpenAI's words: one that the person or heed ended has ended with `stop`."""
    reason = "stop" if result.finish_reason in (STOPPED, REPEATED) else result.finish_reason
    return "tool_calls" if result.tool_calls and reason == "stop" else reason


def heed_info(result: GenerateResult) -> responses.HeedInfo:
    """Return heed's own fields about an answer."""
    return responses.HeedInfo(
        adapter_version=result.adapter_version,
        notes=result.notes,
        time_to_first_token_s=result.time_to_first_token_s,
        duration_s=result.duration_s,
        waited_s=result.waited_s,
        finish_reason=result.finish_reason,
    )


def sampling(body: bodies.ChatBody, default: Sampling) -> Sampling:
    """Return the sampling parameters of the body, with heed's defaults for the others. Raises InvalidField."""
    stop = [body.stop] if isinstance(body.stop, str) else body.stop or []
    chosen = {name: value for name in CHOSEN if (value := getattr(body, name)) is not None}
    return replace(
        default,
        **chosen,
        max_tokens=body.max_completion_tokens or body.max_tokens or default.max_tokens,
        stop=tuple(stop),
        top_logprobs=(body.top_logprobs or 0) if body.logprobs else 0,
        json_schema=schema_of(body.response_format),
        tool_choice=choice_of(body),
        parallel_tool_calls=body.parallel_tool_calls,
    )


def schema_of(wanted: bodies.ResponseFormatBody | None) -> Json | None:
    """Return the JSON schema that an answer has to fit, None for text. Raises InvalidField."""
    if wanted is None or wanted.type == "text":
        return None
    if wanted.type == "json_object":
        return {"type": "object"}
    if wanted.json_schema is None or not wanted.json_schema.json_schema:
        raise InvalidField(messages.SCHEMA_MISSING, "response_format.json_schema.schema")
    return wanted.json_schema.json_schema


async def paced(deltas: AsyncGenerator[Delta, None]) -> AsyncGenerator[Delta, None]:
    """Yield an answer's pieces, the first one at once, the others at most every PIECE_INTERVAL_S, joined.

    People read no faster, and sending single words of a fast model would keep heed busy.
    """
    async with aclosing(deltas):
        async for delta in deltas:
            yield delta
            if delta.result is None:
                await asyncio.sleep(PIECE_INTERVAL_S)


async def interleave(streams: Sequence[AsyncGenerator[T, None]]) -> AsyncGenerator[tuple[int, T], None]:
    """Yield the items of several streams as they come, each with its stream's index. Closing it closes them all."""
    if len(streams) == 1:  # a task and a queue would only delay every piece
        async with aclosing(streams[0]) as only:
            async for piece in only:
                yield 0, piece
        return
    queue: asyncio.Queue[tuple[int, T] | None] = asyncio.Queue()

    async def pump(index: int, stream: AsyncGenerator[T, None]) -> None:
        async with aclosing(stream):
            async for item in stream:
                queue.put_nowait((index, item))

    tasks = [asyncio.create_task(pump(*entry), name=f"choice {entry[0]}") for entry in enumerate(streams)]
    everything = asyncio.gather(*tasks)
    everything.add_done_callback(lambda _: queue.put_nowait(None))
    try:
        while (item := await queue.get()) is not None:
            yield item
        await everything
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, everything, return_exceptions=True)


async def turns_of(core: Core, body: bodies.ChatBody, who: Author) -> list[Turn]:
    """Return the turns of a call, one for each choice. Raises InvalidField."""
    turn = await _first_turn(core, body, who)
    seed = turn.sampling.seed
    return [
        replace(
            turn,
            completion_id=choice_id(turn.completion_id, index),
            choice_index=index,
            sampling=turn.sampling if seed is None else replace(turn.sampling, seed=seed + index),
        )
        for index in range(body.n)
    ]


async def _first_turn(core: Core, body: bodies.ChatBody, who: Author) -> Turn:
    gateway = core.gateway
    tools = tools_of(body, core.engine.skills, gateway.settings.text_limit_chars)
    wishes: Json = {
        "notes": body.heed.notes,
        "adapter": body.adapter,
        "is_whole": body.heed.truncation == "disabled",
        **({"tools": tools} if tools else {}),
    }
    wanted = sampling(body, gateway.sampling())
    if body.n > 1 and (body.heed.chat or body.heed.regenerate):
        raise InvalidField(messages.ONE_ANSWER, "n")
    if body.heed.regenerate:
        dropped = await gateway.completion((await gateway.known(who)).id, body.heed.regenerate)
        return replace(gateway.again(dropped, gateway.varied(dropped)), **wishes)
    conversation = messages_of(body.messages, gateway.settings.text_limit_chars)
    if body.heed.chat is None:
        return await gateway.turn_outside(who, conversation, wanted, **wishes)
    if len(conversation) > 1:
        raise InvalidField(messages.ONE_MESSAGE, "messages")
    said = Message(who, Place("http", body.heed.chat), conversation[0]["content"])
    return await gateway.turn_of_call(said, wanted, **wishes)


def messages_of(given: Sequence[bodies.MessageBody], limit_chars: int) -> list[ChatMessage]:
    """Return a conversation that ends with a question. Raises InvalidField."""
    conversation = [message.plain() for message in given]
    asked = [message["content"] for message in conversation if message["role"] == "user"]
    if not asked or conversation[-1]["role"] not in ("user", "tool"):
        raise InvalidField(messages.LAST_ROLE, "messages")
    if not asked[-1].strip():
        raise InvalidField(messages.EMPTY_MESSAGE, "messages")
    for message in conversation:
        check_text(message["content"], limit_chars, "messages")
        for call in message.get("tool_calls", ()):
            check_text(call["function"]["arguments"], limit_chars, "messages")
    return conversation


async def _stream(sign: WaitSign, call: ChatCall, pieces: AsyncIterator[tuple[int, Delta]]) -> web.StreamResponse:
    response = sign.response
    try:
        first = await anext(pieces)
        if not await sign.end():
            await response.prepare(sign.request)
        for opening in call.first_chunks():
            await _send(response, opening)
        await _forward(response, call, first)
        async for piece in pieces:
            await _forward(response, call, piece)
    except ConnectionResetError:
        raise  # the client left
    except Exception as error:  # the edge of the stream: the error body goes into it
        if not await sign.end():
            raise  # it can still be an ordinary error response
        await _send(response, body_of(sign.request, error)[1])
        return response
    if call.body.stream_options and call.body.stream_options.include_usage:
        await _send(response, call.usage_chunk())
    await response.write(b"data: [DONE]\n\n")
    return response


async def _forward(response: web.StreamResponse, call: ChatCall, piece: tuple[int, Delta]) -> None:
    index, delta = piece
    entries = call.take(index, delta)
    if delta.text or delta.reasoning or delta.tool_calls or entries:
        await _send(response, call.chunk(index, delta, entries))
    if delta.result is not None:
        await _send(response, call.last_chunk(index))


async def _send(response: web.StreamResponse, data: Mapping[str, Any]) -> None:
    await response.write(f"data: {json.dumps(data, ensure_ascii=False)}\n\n".encode())
