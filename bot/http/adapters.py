"""The versions of a person's adapter: what taught each, and the way back."""

from aiohttp import web

from bot.http import bodies, views
from bot.http.auth import author
from bot.http.services import SERVICES
from storage import feedback, updates, versions

LIMIT = 500  # rows of feedback and updates looked through for what taught a version


async def list_versions(request: web.Request) -> web.Response:
    """`GET /v1/users/{user}/adapters`, newest first; version 0 is the base model and always there."""
    services = request.app[SERVICES]
    user = await services.gateway.known(author(request, request.match_info["user"]))
    user_id = user.id
    rows = await services.database.read(lambda s: versions.history(s, user_id))
    given = await services.database.read(lambda s: feedback.history(s, user_id, LIMIT))
    runs = await services.database.read(lambda s: updates.recent(s, user_id, LIMIT))
    taught = {row.id: row for row in given}
    ran = {run.id: run for run in runs}
    data = [
        views.version(row, taught.get(row.feedback_id or ""), ran.get(row.update_id or ""))
        for row in sorted(rows, key=lambda row: -row.number)
    ]
    return web.json_response({"object": "list", "active_version": user.active_version, "data": data})


async def roll_back(request: web.Request) -> web.Response:
    """`POST /v1/users/{user}/rollback` `{version}`: an earlier version answers again."""
    services = request.app[SERVICES]
    body = await bodies.read(request, bodies.RollbackBody)
    user_id = (await services.gateway.known(author(request, request.match_info["user"]))).id
    version = await services.engine.rollback(user_id, body.version)
    return web.json_response({"adapter_version": version})


async def undo(request: web.Request) -> web.Response:
    """`POST /v1/users/{user}/undo`: take back the last lesson, version and note together."""
    services = request.app[SERVICES]
    user_id = (await services.gateway.known(author(request, request.match_info["user"]))).id
    undone = await services.engine.undo(user_id)
    return web.json_response({"adapter_version": undone.version, "note": undone.note})
