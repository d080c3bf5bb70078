"""One person: summary, history, commands, export and erasure."""

import time
from base64 import b64encode
from functools import partial

from aiohttp import web

from bot.access.api_keys import OPERATOR
from bot.access.outside import outside
from bot.commands import person
from bot.core.core import Core
from bot.core.feedback import REASONS
from bot.core.lessons import stored_outcome
from bot.errors import InvalidField, NotFound
from bot.events import Command, Place
from bot.http.protocol import bodies, messages, responses, scopes, views
from bot.http.protocol.app_keys import CORE
from bot.http.protocol.auth import author, holder, spend
from bot.http.protocol.openapi import gives
from storage.learning import better_answers, feedback, updates
from storage.people import consent, personal_data
from storage.people.api_keys import Spending
from storage.tables import User

SPENT_BY: dict[str, Spending] = {
    "retry": "messages", "feedback": "updates", "consolidate": "updates", "rebuild": "updates"
}  # fmt: skip
MAX_BETTER = 20  # newest better answers in a summary


@gives(responses.PersonResponse)
async def summary(request: web.Request) -> web.Response:
    """Return a person's settings, active version and newest better answers (`GET /v1/users/{user}`)."""
    core = request.app[CORE]
    who = author(request, request.match_info["user"])
    user = await core.gateway.known(who)
    tries = await core.database.read(lambda s: better_answers.recent(s, user.id, MAX_BETTER))
    has_follow_ups = await core.database.read(lambda s: consent.allows_follow_ups(s, user.id))
    return web.json_response(
        responses.PersonResponse(
            user=who.display_name,
            account=who.account,
            has_key=holder(request) is not OPERATOR,
            outside=outside(core.settings),
            is_learning=user.is_learning,
            learns_from_follow_ups=user.is_learning and has_follow_ups,
            active_version=user.active_version,
            persona=user.persona,
            model=core.settings.model_name,
            reasons=list(REASONS),  # for the buttons under a thumb down
            better_answers=[views.better_answer(row) for row in tries],
        )
    )


@gives(responses.History, asks=bodies.HistoryQuery)
async def history(request: web.Request) -> web.Response:
    """Return a stored conversation, oldest turn first (`GET /v1/users/{user}/history?chat=web&limit=50`)."""
    core = request.app[CORE]
    asked = bodies.query(request, bodies.HistoryQuery)
    user = await core.gateway.known(author(request, request.match_info["user"]))
    if not user.id:
        return web.json_response(responses.History(object="list", data=[]))
    chat = await core.gateway.chat(user.id, Place("http", asked.chat))
    about: dict[str, list[responses.StoredFeedback]] = {}
    for entry in await _feedback(core, user, asked.limit * 4):
        about.setdefault(entry["completion_id"] or "", []).append(entry)
    turns = await core.gateway.history(chat.id, asked.limit)
    ids = [row.id for turn in turns for row in turn]
    better = await core.database.read(lambda s: better_answers.about(s, user.id, ids))
    data = [[views.turn(row, about.get(row.id, []), better.get(row.id)) for row in turn] for turn in turns]
    return web.json_response(responses.History(object="list", data=data))


@gives(responses.CommandResponse, takes=bodies.CommandBody, refuses=(404, 409, 504))
async def command(request: web.Request) -> web.Response:
    """Run a slash command as in a chat, such as "/history 5" (`POST /v1/users/{user}/commands`)."""
    core = request.app[CORE]
    body = await bodies.read(request, bodies.CommandBody)
    given = person.parse(body.text)
    if given is None:
        raise InvalidField(messages.NO_COMMAND, "text")
    scopes.require(holder(request), "chat", "feedback", "adapters")  # a command may do any of these
    if given.name in SPENT_BY:
        await spend(request, SPENT_BY[given.name])
    if given.name in ("retry", "feedback"):
        core.gateway.require_ready()
    who = author(request, request.match_info["user"])
    person.check(core, given, who)
    user_id = (await core.gateway.caller(who)).user_id
    about = Command(given.name, given.argument, body.completion_id)
    said = await person.run(core, user_id, Place("http", body.chat), about, who)
    return web.json_response(
        responses.CommandResponse(
            command=given.name,
            text=said.text,
            feedback=views.lesson(said.lesson) if said.lesson else None,
            answer=views.retry(said.answer) if said.answer else None,
            files=[
                responses.FileResponse(name=name, base64=b64encode(content).decode()) for name, content in said.files
            ],
        )
    )


@gives(responses.PersonalData)
async def export(request: web.Request) -> web.Response:
    """Return everything heed stores about a person, token ids included (`GET /v1/users/{user}/export`)."""
    core = request.app[CORE]
    user = await core.gateway.known(author(request, request.match_info["user"]))
    tables = await core.database.read(lambda s: personal_data.everything(s, user.id))
    data = {"exported_at": time.time(), "user": user.model_dump(), **tables}
    return web.json_response(data, headers={"Content-Disposition": 'attachment; filename="heed-export.json"'})


@gives(responses.Forgotten, refuses=(404,))
async def forget(request: web.Request) -> web.Response:
    """Erase a person and everything stored about them (`DELETE /v1/users/{user}`)."""
    core = request.app[CORE]
    user = await core.gateway.known(author(request, request.match_info["user"]))
    if not user.id:
        raise NotFound(messages.UNKNOWN_PERSON, "user")
    await core.gateway.forget(user.id)
    return web.json_response(responses.Forgotten(forgotten=True))


async def _feedback(core: Core, user: User, limit: int) -> list[responses.StoredFeedback]:
    rows = await core.database.read(lambda s: feedback.history(s, user.id, limit))
    runs = await core.database.read(lambda s: updates.recent(s, user.id, limit))
    ran = {run.feedback_id: run for run in reversed(runs)}
    ordered = sorted(rows, key=lambda row: row.seq or 0)
    outcome = partial(
        stored_outcome, active_version=user.active_version, is_calibrated=core.engine.config.is_calibrated
    )
    return [views.feedback(row, outcome(row, ran.get(row.id))) for row in ordered]
