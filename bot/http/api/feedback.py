"""`POST /v1/feedback` in heed's form: a correction, a rewritten answer, an approval, a reaction or a note."""

from dataclasses import replace
from typing import Any

from aiohttp import web

from bot.core import feedback as mapping
from bot.core.core import Core
from bot.core.gateway import choice_id
from bot.errors import InvalidField
from bot.events import Command, Edit, FeedbackEvent, Press, Reaction, Reply
from bot.http.protocol import bodies, messages, views
from bot.http.protocol.app_keys import CORE
from bot.http.protocol.auth import author, spend
from engine.config import ConfigError
from storage.kinds import TAUGHT_AT_ONCE, Scope

KEY_HEADER = "Idempotency-Key"
MAX_KEY_CHARS = 255
KEY = {"type": "string", "minLength": 1, "maxLength": MAX_KEY_CHARS}


async def give(request: web.Request) -> web.Response:
    """Learn from one piece of feedback (`POST /v1/feedback`)."""
    core = request.app[CORE]
    body = await bodies.read(request, bodies.FeedbackBody)
    if body.retry and not body.wait:
        raise InvalidField(messages.RETRY_NEEDS_WAIT, "retry")
    record = replace(mapping.record(event(body)), scope=Scope(body.scope) if body.scope else None)
    training = training_of(core, body.training)
    if record.kind in TAUGHT_AT_ONCE:
        await spend(request, "updates")
    user_id = await core.gateway.person(author(request, body.user))
    lesson = await core.lessons.teach(
        user_id, record, idempotency_key=key_of(request), training=training, wait=body.wait, retry=body.retry
    )
    return web.json_response(views.lesson(lesson))


def event(body: bodies.FeedbackBody) -> FeedbackEvent:
    """Return the event that a body describes. Raises InvalidField if a field that its kind needs is missing."""
    if body.kind == "note":
        return Command("note", body.text, _target(body) if body.completion_id else None)
    target = _target(body)
    match body.kind:
        case "correction":
            return Reply(target, body.text)
        case "ideal":
            return Edit(target, body.text)
        case "reaction":
            return Reaction(target, _sign(body.value), body.text)
    return Press(target, "approve")


def _target(body: bodies.FeedbackBody) -> str:
    if not body.completion_id:
        raise InvalidField(messages.NO_COMPLETION_ID, "completion_id")
    return choice_id(body.completion_id, body.index)


def _sign(value: str | int) -> str:
    return f"{value:+d}" if isinstance(value, int) else value


def training_of(core: Core, training: dict[str, Any] | None) -> dict[str, Any] | None:
    """Return settings for one update after checking them against the running ones. Raises InvalidField."""
    try:
        replace(core.engine.config, learn=core.settings.learn.merged(training))
    except (ConfigError, TypeError) as error:
        raise InvalidField(str(error), "training") from None
    return training


def key_of(request: web.Request) -> str | None:
    """Return the call's idempotency key, if it has one. Raises InvalidField."""
    key = request.headers.get(KEY_HEADER)
    if key is not None and not 1 <= len(key) <= MAX_KEY_CHARS:
        raise InvalidField(messages.KEY_LENGTH.format(header=KEY_HEADER, limit=MAX_KEY_CHARS), KEY_HEADER)
    return key
