"""OpenAI's older call, `POST /v1/completions`: the prompt is the person's message, the text is heed's answer.

It is a turn like any other: stored, with an id that takes feedback. Tokens are given by their ids, as in chat calls;
the offsets of tokens in the text are not returned.
"""

from collections.abc import Sequence
from typing import Any, ClassVar

from aiohttp import web

from bot.core.gateway import check_text
from bot.errors import InvalidField, NotSupported
from bot.http.api import feedback
from bot.http.openai import parameters, replays, responses
from bot.http.openai.chat import ANSWERING, ChatCall, answered, finish_reason, turns_of
from bot.http.openai.models import asker
from bot.http.protocol import bodies, messages
from bot.http.protocol.app_keys import CORE
from bot.http.protocol.openapi import gives
from engine.requests import Delta

Json = dict[str, Any]


@gives(
    responses.TextCompletion,
    takes=bodies.TextBody,
    streams=responses.TextCompletion,
    headers={feedback.KEY_HEADER: feedback.KEY},
    refuses=ANSWERING,
)
async def completions(request: web.Request) -> web.StreamResponse:
    """Answer a prompt in OpenAI's older form, whole or as a stream of events (`POST /v1/completions`)."""
    core = request.app[CORE]
    body = await parameters.read(request, bodies.TextBody)
    core.gateway.require_ready()
    chat = chat_of(body, core.gateway.settings.text_limit_chars)
    turns = await turns_of(core, chat, await asker(request, body))
    return await answered(request, TextCall(core, chat, replays.keyed(request, chat, turns)))


def chat_of(body: bodies.TextBody, limit_chars: int) -> bodies.ChatBody:
    """Return the chat call with the prompt as its one message. Raises InvalidField."""
    prompts = [body.prompt] if isinstance(body.prompt, str) else body.prompt
    if len(prompts) != 1:
        raise InvalidField(messages.ONE_PROMPT, "prompt")
    if not prompts[0].strip():
        raise InvalidField(messages.EMPTY_PROMPT, "prompt")
    check_text(prompts[0], limit_chars, "prompt")
    if body.best_of is not None and body.best_of != body.n:
        raise NotSupported(messages.NO_BEST_OF, "best_of")
    same = body.model_dump(exclude={"prompt", "echo", "suffix", "logprobs", "best_of"})
    logprobs = {"logprobs": body.logprobs is not None, "top_logprobs": body.logprobs}
    return bodies.ChatBody.model_validate({**same, **logprobs, "messages": [{"role": "user", "content": prompts[0]}]})


class TextCall(ChatCall):
    """A chat call answered in the older form."""

    kind: ClassVar[str] = "text_completion"
    piece_kind: ClassVar[str] = "text_completion"

    def choice(self, index: int) -> Json:
        """Return one finished choice."""
        result = self.results[index]
        logprobs = as_lists(self.logprobs[index]) if self.body.logprobs else None
        return {"index": index, "text": result.text, "finish_reason": finish_reason(result), "logprobs": logprobs}

    def first_chunks(self) -> list[Json]:
        """Return no pieces: nothing comes before the first word."""
        return []

    def chunk(self, index: int, delta: Delta, entries: list[Json]) -> Json:
        """Return one piece of a stream."""
        logprobs = as_lists(entries) if entries else None
        return self._piece({"index": index, "text": delta.text, "finish_reason": None, "logprobs": logprobs})

    def last_chunk(self, index: int) -> Json:
        """Return the last piece of a choice, with its finish reason."""
        reason = finish_reason(self.results[index])
        return self._piece({"index": index, "text": "", "finish_reason": reason, "logprobs": None})


def as_lists(entries: Sequence[Json]) -> Json:
    """Return a chat call's entries in the older form: one list for each kind of value."""
    return {
        "tokens": [entry["token"] for entry in entries],
        "token_logprobs": [entry["logprob"] for entry in entries],
        "top_logprobs": [{top["token"]: top["logprob"] for top in entry["top_logprobs"]} for entry in entries],
    }
