"""continualcode's web calls: conversations under `/api/sessions` that can be prompted, revised and learned from.

A session is a conversation that heed stores for its person; all sessions of a person teach that person's adapter. There
are no profiles: lasting wishes are given as feedback or `/note`. A session with a workspace is an agent's
(`bot.http.agent`).
"""

from typing import Annotated, Literal

from aiohttp import web
from pydantic import ConfigDict, StringConstraints

from bot.core import feedback as mapping
from bot.core.core import Core
from bot.core.gateway import check_text, question
from bot.errors import InvalidField, NotFound
from bot.events import Author, Edit, FeedbackEvent, Message, Place, Press, Reply
from bot.http.agent import sessions as agents
from bot.http.agent.responses import AgentDetails, AgentStep
from bot.http.continualcode import responses
from bot.http.continualcode.metrics import metrics_of
from bot.http.continualcode.responses import LessonMetrics, SessionMessage, SessionSummary
from bot.http.protocol import bodies, messages, views
from bot.http.protocol.app_keys import CORE
from bot.http.protocol.auth import author, spend
from bot.http.protocol.openapi import gives
from storage.conversations import chats
from storage.kinds import TAUGHT_AT_ONCE
from storage.learning import updates
from storage.tables import Chat, Completion, new_id

RECENT = 20  # updates searched for the last lesson
PREFIX = "session/"  # keeps sessions apart from chats of heed's own clients


class SessionBody(bodies.Body):
    """`POST /api/sessions`; other fields of continualcode are refused by name."""

    model_config = ConfigDict(extra="forbid")

    profile: Literal["default"] = "default"
    user: bodies.Name = ""
    workspace: Annotated[str, StringConstraints(max_length=255)] | None = None  # an agent's; empty: the person's own


class SessionFeedbackBody(bodies.Body):
    """`POST /api/sessions/{id}/feedback`."""

    kind: Literal["accept", "revise", "ideal"]
    text: str = ""


@gives(responses.Profiles)
async def profiles(_: web.Request) -> web.Response:
    """List the profiles, of which there is one (`GET /api/profiles`)."""
    return web.json_response(responses.Profiles(profiles=["default"]))


@gives(responses.SessionList, asks=bodies.UserQuery)
async def list_sessions(request: web.Request) -> web.Response:
    """List a person's sessions, newest first (`GET /api/sessions`)."""
    core = request.app[CORE]
    user = await core.gateway.known(_who(request))
    found = await core.database.read(lambda s: chats.below(s, user.id, "http", PREFIX))
    both = [*(_head(chat) for chat in found), *await agents.summaries(request, user.id)]
    both.sort(key=lambda head: head["created_at"], reverse=True)
    return web.json_response(responses.SessionList(sessions=both))


@gives(responses.SessionDetails | AgentDetails, takes=SessionBody, needs_body=False, asks=bodies.UserQuery)
async def create(request: web.Request) -> web.Response:
    """Start a new session, an agent's if it names a workspace; the body may be left out (`POST /api/sessions`)."""
    core = request.app[CORE]
    body = await bodies.read(request, SessionBody) if request.can_read_body else SessionBody()
    user = body.user or bodies.query(request, bodies.UserQuery).user
    if body.workspace is not None:
        return await agents.create(request, body.workspace, user)
    user_id = await core.gateway.person(author(request, user))
    chat = await core.gateway.chat(user_id, Place("http", PREFIX + new_id()))
    return web.json_response(responses.SessionDetails(**_head(chat), messages=[], metrics={}))


@gives(responses.SessionDetails | AgentDetails, asks=bodies.UserQuery, refuses=(404,))
async def show(request: web.Request) -> web.Response:
    """Return a session's messages and the metrics of the person's last lesson (`GET /api/sessions/{id}`)."""
    if agents.is_agents(request):
        return await agents.show(request)
    core, chat = request.app[CORE], await _chat(request)
    said = [message for row in await core.gateway.turns(chat.id) for message in _exchange(row)]
    runs = await core.database.read(lambda s: updates.recent(s, chat.user_id, RECENT))
    last = next((run for run in runs if run.feedback_id and run.steps), None)
    metrics: LessonMetrics = metrics_of(last.version or last.parent_version, last) if last else {}
    return web.json_response(responses.SessionDetails(**_head(chat), messages=said, metrics=metrics))


@gives(responses.SessionDeleted, asks=bodies.UserQuery, refuses=(404,))
async def delete(request: web.Request) -> web.Response:
    """Delete a session; answers that taught something stay (`DELETE /api/sessions/{id}`)."""
    if agents.is_agents(request):
        return await agents.delete(request)
    chat = await _chat(request)
    await request.app[CORE].database.write(lambda s: chats.remove(s, chat.id))
    return web.json_response(responses.SessionDeleted(deleted=True))


@gives(responses.Cleared | AgentDetails, asks=bodies.UserQuery, refuses=(404,))
async def clear(request: web.Request) -> web.Response:
    """Start a session anew (`POST /api/sessions/{id}/clear`)."""
    if agents.is_agents(request):
        return await agents.clear(request)
    chat = await _chat(request)
    await request.app[CORE].database.write(lambda s: chats.reset(s, chat.id))
    return web.json_response(responses.Cleared(**_head(chat), messages=[]))


@gives(responses.Prompted | AgentStep, takes=agents.PromptBody, asks=bodies.UserQuery, refuses=(404, 409, 504))
async def prompt(request: web.Request) -> web.Response:
    """Answer the next turn of a session (`POST /api/sessions/{id}/prompt`)."""
    if agents.is_agents(request):
        return await agents.prompt(request)
    core, chat = request.app[CORE], await _chat(request)
    body = await bodies.read(request, agents.PromptBody)
    core.gateway.require_ready()
    if not body.text.strip():
        raise InvalidField(messages.EMPTY_TEXT, "text")
    turn = await core.gateway.turn(Message(_who(request), Place("http", chat.external_id), body.text))
    await spend(request, "messages")
    answer = await core.gateway.answer(turn)
    given = responses.Prompted(response=answer.text, completion_id=answer.id, session_id=_id(chat))
    return web.json_response(given)


@gives(responses.Revised, takes=SessionFeedbackBody, asks=bodies.UserQuery, refuses=(404, 504))
async def feedback(request: web.Request) -> web.Response:
    """Learn from feedback about the last answer and return the new one (`POST /api/sessions/{id}/feedback`)."""
    core, chat = request.app[CORE], await _chat(request)
    body = await bodies.read(request, SessionFeedbackBody)
    core.gateway.require_ready()
    answer = await _last(core, chat)
    record = mapping.record(_event(body, answer.id))
    if record.kind in TAUGHT_AT_ONCE:
        await spend(request, "updates")
    lesson = await core.lessons.teach(chat.user_id, record, retry=body.kind != "accept")
    shown = lesson.retry or answer
    metrics: LessonMetrics = (
        metrics_of(lesson.outcome.adapter_version, lesson.outcome) if lesson.outcome.update_id else {}
    )
    given = responses.Revised(
        response=shown.text, completion_id=shown.id, metrics=metrics, feedback=views.lesson(lesson)
    )
    return web.json_response(given)


def _event(body: SessionFeedbackBody, completion_id: str) -> FeedbackEvent:
    match body.kind:
        case "revise":
            return Reply(completion_id, body.text)
        case "ideal":
            return Edit(completion_id, body.text)
    return Press(completion_id, "approve")


async def _last(core: Core, chat: Chat) -> Completion:
    turns = await core.gateway.turns(chat.id)
    if not turns:
        raise NotFound(messages.EMPTY_SESSION, "id")
    return turns[-1]


def _who(request: web.Request) -> Author:
    return author(request, bodies.query(request, bodies.UserQuery).user)


async def _chat(request: web.Request) -> Chat:
    """Return the conversation in the path. Raises NotFound, also if it is another person's."""
    core, wanted = request.app[CORE], request.match_info["id"]
    user = await core.gateway.known(_who(request))
    chat = await core.database.read(lambda s: chats.find(s, user.id, "http", PREFIX + check_text(wanted, 64, "id")))
    if chat is None:
        raise NotFound(messages.NO_SESSION.format(session=wanted), "id")
    return chat


def _id(chat: Chat) -> str:
    return chat.external_id.removeprefix(PREFIX)


def _head(chat: Chat) -> SessionSummary:
    return {"id": _id(chat), "session_id": _id(chat), "created_at": chat.created_at, "profile": "default"}


def _exchange(row: Completion) -> list[SessionMessage]:
    return [{"role": "user", "content": question(row)}, {"role": "assistant", "content": row.text}]
