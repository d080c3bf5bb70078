"""The versions of a person's adapter: list, undo, roll back, consolidate, export and import."""

from aiohttp import web

from bot.commands import consolidate as consolidating
from bot.errors import NotFound
from bot.http.protocol import bodies, messages, responses, views
from bot.http.protocol.app_keys import CORE
from bot.http.protocol.auth import author, spend
from bot.http.protocol.openapi import gives
from engine.errors import AdapterRefused
from storage.learning import versions


@gives(responses.Versions)
async def list_versions(request: web.Request) -> web.Response:
    """List a person's adapter versions, newest first, without the base model (`GET /v1/users/{user}/adapters`)."""
    core = request.app[CORE]
    user = await core.gateway.known(author(request, request.match_info["user"]))
    user_id = user.id
    known = await core.database.read(lambda s: versions.lineage(s, user_id))
    data = [views.version(*entry) for entry in known]
    return web.json_response(responses.Versions(object="list", active_version=user.active_version, data=data))


@gives("application/zip", refuses=(404,))
async def export(request: web.Request) -> web.Response:
    """Send one version as a zip file in PEFT's layout (`GET /v1/users/{user}/adapters/{version}/export`)."""
    core = request.app[CORE]
    core.gateway.require_ready()
    user = await core.gateway.known(author(request, request.match_info["user"]))
    number = int(request.match_info["version"])
    content = await core.engine.export_adapter(user.id, number)
    headers = {"Content-Disposition": f'attachment; filename="heed-adapter-v{number}.zip"'}
    return web.Response(body=content, content_type="application/zip", headers=headers)


@gives("application/zip", refuses=(404,))
async def export_batch(request: web.Request) -> web.Response:
    """Send a version's training data as JSONL in a zip file (`GET /v1/users/{user}/adapters/{version}/batch`)."""
    core = request.app[CORE]
    core.gateway.require_ready()
    user = await core.gateway.known(author(request, request.match_info["user"]))
    number = int(request.match_info["version"])
    content = await core.engine.export_batch(user.id, number)
    headers = {"Content-Disposition": f'attachment; filename="heed-batch-v{number}.zip"'}
    return web.Response(body=content, content_type="application/zip", headers=headers)


@gives(responses.Serving, takes="application/zip")
async def import_version(request: web.Request) -> web.Response:
    """Import an exported version, which answers from now on (`POST /v1/users/{user}/adapters`)."""
    core = request.app[CORE]
    core.gateway.require_ready()
    who = author(request, request.match_info["user"])
    content = await bodies.read_bytes(request, core.settings.versions.max_import_bytes)
    package = await core.engine.check_adapter(content)
    is_stranger = (await core.gateway.caller(who)).is_stranger
    user_id = await core.gateway.person(who)
    try:
        number = await core.engine.import_adapter(user_id, package)
    except AdapterRefused:
        if is_stranger:  # its answers were tried as theirs; nothing else is there of them
            await core.gateway.forget(user_id)
        raise
    return web.json_response(responses.Serving(adapter_version=number))


@gives(responses.Serving, takes=bodies.RollbackBody, refuses=(404,))
async def roll_back(request: web.Request) -> web.Response:
    """Make an earlier version answer again (`POST /v1/users/{user}/rollback`)."""
    core = request.app[CORE]
    body = await bodies.read(request, bodies.RollbackBody)
    user_id = await _known(request)
    version = await core.engine.rollback(user_id, body.version)
    return web.json_response(responses.Serving(adapter_version=version))


@gives(responses.Consolidation, refuses=(404,))
async def consolidate(request: web.Request) -> web.Response:
    """Consolidate new feedback now and wait for the result (`POST /v1/users/{user}/consolidate`)."""
    core, user_id = request.app[CORE], await _known(request)
    await spend(request, "updates")
    return web.json_response(views.consolidation(await consolidating.consolidate(core, user_id)))


@gives(responses.Consolidation, refuses=(404,))
async def rebuild(request: web.Request) -> web.Response:
    """Rebuild the adapter from zero and wait for the result (`POST /v1/users/{user}/rebuild`)."""
    core, user_id = request.app[CORE], await _known(request)
    await spend(request, "updates")
    return web.json_response(views.consolidation(await consolidating.rebuild(core, user_id)))


@gives(responses.Prepared)
async def prepare(request: web.Request) -> web.Response:
    """Have a person's adapter ready for their next answer, while they write (`POST /v1/users/{user}/prepare`)."""
    gateway = request.app[CORE].gateway
    user = await gateway.known(author(request, request.match_info["user"]))
    if user.id:
        await gateway.prepare(user.id)
    return web.json_response(responses.Prepared(adapter_version=user.active_version))


@gives(responses.Undone, refuses=(404, 409))
async def undo(request: web.Request) -> web.Response:
    """Undo the last lesson, its version and its note (`POST /v1/users/{user}/undo`)."""
    core, user_id = request.app[CORE], await _known(request)
    undone = await core.engine.undo(user_id)
    return web.json_response(responses.Undone(adapter_version=undone.version, note=undone.note))


async def _known(request: web.Request) -> str:
    """Return the id of the person in the path. Raises NotFound."""
    user = await request.app[CORE].gateway.known(author(request, request.match_info["user"]))
    if not user.id:
        raise NotFound(messages.UNKNOWN_PERSON, "user")
    return user.id
