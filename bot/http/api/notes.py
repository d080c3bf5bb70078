"""A person's standing notes, and their state: in the prompt, being learned, or in the weights."""

from aiohttp import web

from bot.http.protocol import responses, views
from bot.http.protocol.app_keys import CORE
from bot.http.protocol.auth import author
from bot.http.protocol.openapi import gives
from storage.learning import notes


@gives(responses.Notes)
async def list_notes(request: web.Request) -> web.Response:
    """List a person's standing notes, oldest first, with the prompt tokens saved (`GET /v1/users/{user}/notes`)."""
    core = request.app[CORE]
    user_id = (await core.gateway.known(author(request, request.match_info["user"]))).id
    live = await core.database.read(lambda s: notes.live(s, user_id))
    said = core.engine.prompt_notes(live)
    in_prompt = sum(note.num_tokens for note in said)
    saved = sum(note.num_tokens for note in live) - in_prompt
    data = [views.note(note) for note in live]
    body = responses.Notes(object="list", tokens_saved=saved, tokens_in_prompt=in_prompt, data=data)
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
