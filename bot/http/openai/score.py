"""`POST /v1/score`: the likelihood of a given answer, token by token. Nothing is generated and nothing is stored."""

from aiohttp import web

from bot.core.gateway import check_text
from bot.http.openai import responses
from bot.http.openai.chat import messages_of
from bot.http.openai.models import asker
from bot.http.protocol import bodies
from bot.http.protocol.app_keys import CORE
from bot.http.protocol.auth import spend
from bot.http.protocol.openapi import gives
from engine.requests import GenerateRequest


@gives(responses.ScoreResponse, takes=bodies.ScoreBody)
async def score(request: web.Request) -> web.Response:
    """Score a given answer: log-probabilities in nats, without the token that ends it (`POST /v1/score`)."""
    core = request.app[CORE]
    body = await bodies.read(request, bodies.ScoreBody)
    core.gateway.require_ready()
    limit_chars = core.gateway.settings.text_limit_chars
    messages = messages_of(body.messages, limit_chars)
    check_text(body.completion, limit_chars, "completion")
    await spend(request, "messages")
    caller = await core.gateway.caller(await asker(request, body))
    adapter = "base" if caller.is_stranger else body.adapter
    asked = GenerateRequest(caller.user_id, messages, notes=body.heed.notes, adapter=adapter)
    found = await core.engine.score(asked, body.completion)
    return web.json_response(
        responses.ScoreResponse(
            logprobs=found.logprobs,
            tokens=found.tokens,
            prompt_tokens=found.num_prompt_tokens,
            completion_tokens=len(found.tokens),
            logprob_sum=sum(found.logprobs),
        )
    )
