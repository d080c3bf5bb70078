"""`POST /v1/feedback` in heed's form, what became of a piece of feedback, and the end of its lesson before its time.

A piece is a correction, a rewritten answer, an approval, a reaction or a note.
"""

from dataclasses import replace
from typing import Any

from aiohttp import web

from bot.core import feedback as mapping
from bot.core import scope_choice
from bot.core.core import Core
from bot.core.gateway import choice_id
from bot.core.lessons import LessonResult
from bot.errors import InvalidField
from bot.events import Command, Edit, FeedbackEvent, Press, Reaction, Reply
from bot.http.protocol import bodies, messages, responses, views
from bot.http.protocol.app_keys import CORE
from bot.http.protocol.auth import author, holder, spend
from bot.http.protocol.openapi import gives
from bot.http.protocol.scopes import require
from engine.config import ConfigError
from storage.kinds import TAUGHT_AT_ONCE, FeedbackStatus, Scope
from storage.learning import feedback

KEY_HEADER = "Idempotency-Key"
MAX_KEY_CHARS = 255
KEY = {"type": "string", "minLength": 1, "maxLength": MAX_KEY_CHARS}


async def give(request: web.Request) -> web.Response:
    """Learn from one piece of feedback (`POST /v1/feedback`)."""
    core = request.app[CORE]
    body = await bodies.read(request, bodies.FeedbackBody)
    if body.retry and not body.wait:
        raise InvalidField(messages.RETRY_NEEDS_WAIT, "retry")
    scope = Scope(body.scope) if body.scope else None
    record = replace(mapping.record(event(body)), scope=scope, context=tuple(body.context))
    training = training_of(core, body.training)
    await core.lessons.check(record)
    who = author(request, body.user)
    known = await core.gateway.known(who)
    if record.completion_id is not None:
        await core.gateway.completion(known.id, record.completion_id)
    is_repeated = await _is_repeated(request, known.id)
    await _spend(request, body, is_taught=record.kind in TAUGHT_AT_ONCE, is_repeated=is_repeated)
    user_id = await core.gateway.person(who)  # last: a refused call makes no person
    lesson = await core.lessons.teach(
        user_id, record, idempotency_key=key_of(request), training=training, wait_s=_wait_s(body), retry=body.retry
    )
    return web.json_response(views.lesson(lesson))


@gives(responses.FeedbackState, asks=bodies.UserQuery, refuses=(404,))
async def show(request: web.Request) -> web.Response:
    """Return what became of a piece of feedback, or how far its lesson is (`GET /v1/feedback/{id}`)."""
    core = request.app[CORE]
    user_id, feedback_id = await _person(request), request.match_info["id"]
    known = await core.lessons.progress(feedback_id)  # first: what ends meanwhile is seen to have ended
    row = await core.database.read(lambda s: feedback.of_person(s, user_id, feedback_id))
    stored = views.feedback(row, await core.lessons.outcome_of(row))
    if row.status not in (FeedbackStatus.PENDING, FeedbackStatus.TRAINING):
        known = None  # it ended while it was read
    state = responses.FeedbackState(**stored, progress=views.progress(known) if known else None)
    return web.json_response(state)


@gives(responses.Cancelled, asks=bodies.UserQuery, refuses=(404,))
async def cancel(request: web.Request) -> web.Response:
    """Stop a lesson that waits or runs; nothing is learned from it (`POST /v1/feedback/{id}/cancel`)."""
    core = request.app[CORE]
    outcome = await core.lessons.cancel(await _person(request), request.match_info["id"])
    return web.json_response(views.cancelled(outcome))


@gives(responses.LessonResponse, takes=bodies.ScopeBody, asks=bodies.UserQuery, refuses=(404, 504))
async def choose(request: web.Request) -> web.Response:
    """Keep how far a lesson is to reach; teach it again if it was taught otherwise (`POST /v1/feedback/{id}/scope`)."""
    core, body = request.app[CORE], await bodies.read(request, bodies.ScopeBody)
    user_id, feedback_id, scope = await _person(request), request.match_info["id"], Scope(body.scope)
    if body.retry and not body.wait:
        raise InvalidField(messages.RETRY_NEEDS_WAIT, "retry")
    row = await core.database.read(lambda s: feedback.of_person(s, user_id, feedback_id))
    key = f"scope:{feedback_id}:{scope}"
    is_repeated = await core.database.read(lambda s: feedback.by_key(s, user_id, key)) is not None
    await _spend(request, body, is_taught=scope_choice.must_be_taught_again(row, scope), is_repeated=is_repeated)
    record = await scope_choice.choose(core, user_id, feedback_id, scope, key)
    if record is None:
        return web.json_response(views.lesson(LessonResult(row, await core.lessons.outcome_of(row))))
    lesson = await core.lessons.teach(user_id, record, idempotency_key=key, wait_s=_wait_s(body), retry=body.retry)
    return web.json_response(views.lesson(lesson))


async def _person(request: web.Request) -> str:
    """Return the id of the person that a call without a body speaks for, empty if heed does not know them."""
    named = author(request, bodies.query(request, bodies.UserQuery).user)
    return (await request.app[CORE].gateway.known(named)).id


async def _spend(
    request: web.Request, body: bodies.FeedbackBody | bodies.ScopeBody, *, is_taught: bool, is_repeated: bool
) -> None:
    """Count a lesson, and the answer given again, unless the call is a repeated one. Raises ScopeMissing, QuotaUsed."""
    if body.retry:
        require(holder(request), "chat")
    if is_repeated:
        return
    if body.retry:
        await spend(request, "messages")
    if is_taught:
        await spend(request, "updates")


async def _is_repeated(request: web.Request, user_id: str) -> bool:
    """Return True if a call with the same idempotency key came before: that one was counted."""
    key = key_of(request)
    if key is None:
        return False
    return await request.app[CORE].database.read(lambda s: feedback.by_key(s, user_id, key)) is not None


def _wait_s(body: bodies.FeedbackBody | bodies.ScopeBody) -> float | None:
    """Return how long a call waits at most, None for as long as heed's settings say."""
    if body.wait is True:
        return None
    return float(body.wait)


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
