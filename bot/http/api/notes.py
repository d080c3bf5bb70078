"""A person's standing notes, and where each is now: in the prompt, waiting, being learned, or in the weights."""

from aiohttp import web

from bot.core.standing_notes import standing_notes
from bot.http.protocol import responses, views
from bot.http.protocol.app_keys import CORE
from bot.http.protocol.auth import author
from bot.http.protocol.openapi import gives
from storage.learning import notes


@gives(responses.Notes)
async def list_notes(request: web.Request) -> web.Response:
    """List a person's standing notes, oldest first, those in the prompt now marked (`GET /v1/users/{user}/notes`)."""
    core = request.app[CORE]
    user = await core.gateway.known(author(request, request.match_info["user"]))
    found = await standing_notes(core.engine, core.database, user)
    body = responses.Notes(
        object="list",
        tokens_saved=found.tokens_saved,
        tokens_in_prompt=found.tokens_in_prompt,
        data=[views.note(note, found) for note in found.live],
    )
    return web.json_response(body)


@gives(responses.Deleted, refuses=(404,))
async def delete_note(request: web.Request) -> web.Response:
    """Delete a note and rebuild the adapter if it was learned (`DELETE /v1/users/{user}/notes/{id}`)."""
    core = request.app[CORE]
    user_id = (await core.gateway.known(author(request, request.match_info["user"]))).id
    note_id = request.match_info["id"]
    await core.database.read(lambda s: notes.get(s, user_id, note_id))
    await core.engine.delete_note(user_id, note_id)
    return web.json_response(responses.Deleted(deleted=note_id))
