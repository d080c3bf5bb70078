"""An agent's sessions: `/api/sessions` with a workspace, where each call of a tool waits for its person.

A message or a decision is answered once the agent has something to ask or to say; it goes on also when its client has
left, and `GET /api/sessions/{id}/events` tells everyone who looks.
"""

import json
from collections.abc import AsyncIterator
from dataclasses import asdict
from functools import partial
from typing import Annotated, Any, cast

from aiohttp import web
from pydantic import StringConstraints

from bot.agent.live_session import AgentEvent, AgentTurn, LiveSession, about, call_view
from bot.agent.service import AgentService
from bot.agent.workspace_notes import is_note
from bot.core.gateway import check_text
from bot.errors import AgentNotAllowed, InvalidField
from bot.events import Author
from bot.http.agent import responses
from bot.http.protocol import bodies, messages
from bot.http.protocol.app_keys import CORE
from bot.http.protocol.auth import author, spend
from bot.http.protocol.event_streams import CONTENT_TYPE, EventStreams
from bot.http.protocol.openapi import gives
from engine.requests import ChatMessage
from storage.tables import AgentWork

Mark = Annotated[str, StringConstraints(min_length=1, max_length=64)]  # of the call that the person was shown
AGENTS = web.AppKey("agents", AgentService)
OF_AGENTS = "agent-"  # how the ids of these sessions begin
WATCHERS = web.AppKey("agent_watchers", EventStreams)


class ApprovalBody(bodies.Body):
    """`POST /api/sessions/{id}/approve`; `always`: this tool needs no question in this session any more."""

    mark: Mark
    always: bool = False


class CorrectionBody(bodies.Body):
    """`POST /api/sessions/{id}/continue`; without a text nothing is learned."""

    text: str = ""


class DenialBody(CorrectionBody):
    """`POST /api/sessions/{id}/deny`; without a text nothing is learned."""

    mark: Mark


class EditBody(bodies.Body):
    """`POST /api/sessions/{id}/edit`."""

    mark: Mark
    arguments: dict[str, Any]


class ToldBody(bodies.Body):
    """`POST /api/sessions/{id}/notes`."""

    text: bodies.Told


class WorkspaceNoteBody(bodies.Body):
    """`POST /api/workspaces/notes`: a note, `delete 2`, or nothing to list them."""

    workspace: Annotated[str, StringConstraints(max_length=4096)] = ""
    text: Annotated[str, StringConstraints(max_length=1000)] = ""
    user: bodies.Name = ""


class PromptBody(bodies.Body):
    """`POST /api/sessions/{id}/prompt`."""

    text: Annotated[str, StringConstraints(min_length=1)]


@gives(responses.WorkspaceList, asks=bodies.UserQuery)
async def workspaces(request: web.Request) -> web.Response:
    """List the workspaces that a person may begin a session in, or say why there is none (`GET /api/workspaces`)."""
    agents = request.app[AGENTS]
    try:
        agents.require_allowed(_who(request))
    except AgentNotAllowed as error:
        return web.json_response(responses.WorkspaceList(workspaces=[], reason=str(error)))
    return web.json_response(responses.WorkspaceList(workspaces=agents.workspaces.names, reason=""))


@gives(responses.WorkspaceNotesTold, takes=WorkspaceNoteBody)
async def workspace_notes(request: web.Request) -> web.Response:
    """Note something about a workspace, delete a note, or list them (`POST /api/workspaces/notes`)."""
    body = await bodies.read(request, WorkspaceNoteBody)
    gateway, who = request.app[CORE].gateway, author(request, body.user)
    user_id = await gateway.person(who) if is_note(body.text) else (await gateway.known(who)).id
    told = await request.app[AGENTS].hear_of(user_id, body.workspace, body.text)
    return web.json_response(responses.WorkspaceNotesTold(text=told.text, notes=told.notes))


def is_agents(request: web.Request) -> bool:
    """Return True if the session in the path has a workspace."""
    return request.match_info["id"].startswith(OF_AGENTS)


async def create(request: web.Request, workspace: str, user: str) -> web.Response:
    """Begin a session in a workspace."""
    agents, who = request.app[AGENTS], author(request, user)
    agents.require_allowed(who)
    row = await agents.begin(await request.app[CORE].gateway.person(who), workspace)
    return await _details(*await agents.find(row.user_id, row.id))


async def summaries(request: web.Request, user_id: str) -> list[responses.AgentSummary]:
    """Return a person's sessions with a workspace, the newest first."""
    return [_head(row) for row in await request.app[AGENTS].of_person(user_id)]


async def show(request: web.Request) -> web.Response:
    """Return what was said and done in a session, and what waits."""
    return await _details(*await _found(request))


async def delete(request: web.Request) -> web.Response:
    """Stop and remove a session."""
    row, _ = await _found(request)
    await request.app[AGENTS].remove(row.user_id, row.id)
    return web.json_response({"deleted": True})


async def clear(request: web.Request) -> web.Response:
    """Forget what was said in a session."""
    row, live = await _found(request)
    await live.clear()
    return await _details(row, live)


async def prompt(request: web.Request) -> web.Response:
    """Say something to the agent."""
    _, live = await _found(request)
    body = await bodies.read(request, PromptBody)
    if not body.text.strip():
        raise InvalidField(messages.EMPTY_TEXT, "text")
    check_text(body.text, request.app[CORE].settings.chat.text_limit_chars, "text")
    await _spend(request, "messages")
    return _answered(request, live, await live.ask(body.text))


@gives(responses.AgentStep, takes=ApprovalBody, asks=bodies.UserQuery, refuses=(404, 409, 504))
async def approve(request: web.Request) -> web.Response:
    """Run the call that waits, and let the agent go on (`POST /api/sessions/{id}/approve`)."""
    _, live = await _found(request)
    body = await bodies.read(request, ApprovalBody)
    await _spend(request, "messages")
    return _answered(request, live, await live.approve(from_now_on=body.always, mark=body.mark))


@gives(responses.AgentStep, takes=DenialBody, asks=bodies.UserQuery, refuses=(404, 409, 504))
async def deny(request: web.Request) -> web.Response:
    """Drop the call that waits; with a text, learn from it and try again (`POST /api/sessions/{id}/deny`)."""
    _, live = await _found(request)
    body = await bodies.read(request, DenialBody)
    return _answered(request, live, await live.deny(await _correction(request, body), mark=body.mark))


@gives(responses.AgentStep, takes=EditBody, asks=bodies.UserQuery, refuses=(404, 409, 504))
async def edit(request: web.Request) -> web.Response:
    """Put other arguments in place of the waiting call's; what differs is learned (`POST /api/sessions/{id}/edit`)."""
    _, live = await _found(request)
    body = await bodies.read(request, EditBody)
    await _spend(request, "updates")
    return _answered(request, live, await live.edit(body.arguments, mark=body.mark))


@gives(responses.AgentStep, takes=CorrectionBody, needs_body=False, asks=bodies.UserQuery, refuses=(404, 409, 504))
async def go_on(request: web.Request) -> web.Response:
    """Let the agent see that its call failed; with a text, learn that first (`POST /api/sessions/{id}/continue`)."""
    _, live = await _found(request)
    body = await bodies.read(request, CorrectionBody) if request.can_read_body else CorrectionBody()
    return _answered(request, live, await live.go_on(await _correction(request, body)))


@gives(responses.AgentDetails, takes=ToldBody, asks=bodies.UserQuery, refuses=(404, 409))
async def tell(request: web.Request) -> web.Response:
    """Remember something about the work for the teacher of its next lessons (`POST /api/sessions/{id}/notes`).

    The model that answers is not told.
    """
    row, live = await _found(request)
    await live.tell((await bodies.read(request, ToldBody)).text)
    return await _details(row, live)


@gives(responses.AgentStopped, asks=bodies.UserQuery, refuses=(404,))
async def stop(request: web.Request) -> web.Response:
    """Break off what the agent does: an answer, a tool that runs (`POST /api/sessions/{id}/stop`)."""
    _, live = await _found(request)
    return web.json_response(responses.AgentStopped(stopped=await live.stop()))


@gives(CONTENT_TYPE, asks=bodies.UserQuery, streams=responses.AgentEventResponse, refuses=(404,))
async def events(request: web.Request) -> web.StreamResponse:
    """Stream what happens in a session from now on (`GET /api/sessions/{id}/events`)."""
    _, live = await _found(request)
    with live.events() as happening:  # from before the stream opens
        return await request.app[WATCHERS].serve(request, partial(_told, happening), {"Cache-Control": "no-store"})


def prepare(app: web.Application, agents: AgentService) -> None:
    """In place: give the application its agents."""
    app[AGENTS], app[WATCHERS] = agents, EventStreams()


async def end(app: web.Application) -> None:
    """Stop all that agents do when heed stops; what is stored goes on in the next one."""
    await app[AGENTS].close()
    app[WATCHERS].end()


async def _told(happening: AsyncIterator[AgentEvent], response: web.StreamResponse) -> None:
    async for event in happening:
        await response.write(_written(event))


def _written(event: AgentEvent) -> bytes:
    told = responses.AgentEventResponse(kind=event.kind, data=event.data)
    return f"data: {json.dumps(told, ensure_ascii=False)}\n\n".encode()


async def _correction(request: web.Request, body: CorrectionBody) -> str:
    text = check_text(body.text.strip(), request.app[CORE].settings.chat.text_limit_chars, "text")
    await _spend(request, "updates" if text else "messages")
    return text


async def _spend(request: web.Request, what: Any) -> None:
    request.app[CORE].gateway.require_ready()
    await spend(request, what)


async def _found(request: web.Request) -> tuple[AgentWork, LiveSession]:
    """Return the session in the path. Raises AgentWorkNotFound, AgentNotAllowed."""
    core, agents, who = request.app[CORE], request.app[AGENTS], _who(request)
    agents.require_allowed(who)
    user = await core.gateway.known(who)
    return await agents.find(user.id, check_text(request.match_info["id"], 64, "id"))


def _who(request: web.Request) -> Author:
    return author(request, bodies.query(request, bodies.UserQuery).user)


async def _details(row: AgentWork, live: LiveSession) -> web.Response:
    state, git = live.session.state, await live.session.repository.state()
    given: responses.AgentDetails = {
        **_head(row),
        "messages": [_shown(message) for message in state.messages[1:]],
        "status": live.status,
        "call": _waiting(live),
        "allowed": state.allowed,
        "notes": state.told,
        "git": responses.AgentGit(branch=git.branch, changed=git.changed, conflicts=git.conflicts) if git else None,
    }
    return web.json_response(given)


def _shown(message: ChatMessage) -> dict[str, Any]:
    """Return a message with what its call is about, if it has one."""
    calls = message.get("tool_calls")
    return {**message, "about": about(json.loads(calls[0]["function"]["arguments"]))} if calls else message


def _answered(request: web.Request, live: LiveSession, turn: AgentTurn) -> web.Response:
    results = [cast(responses.AgentResult, {"tool": call.tool, **asdict(result)}) for call, result in turn.results]
    lesson = cast(responses.AgentLesson, asdict(turn.lesson)) if turn.lesson else None
    given = responses.AgentStep(
        session_id=request.match_info["id"],
        status=live.status,
        response=turn.words,
        call=_waiting(live),
        results=results,
        lesson=lesson,
    )
    return web.json_response(given)


def _waiting(live: LiveSession) -> responses.AgentCall | None:
    waiting = live.session.state.waiting
    return cast(responses.AgentCall, call_view(waiting)) if waiting else None


def _head(row: AgentWork) -> responses.AgentSummary:
    return {
        "id": row.id,
        "session_id": row.id,
        "created_at": row.created_at,
        "profile": "default",
        "workspace": row.workspace,
    }
