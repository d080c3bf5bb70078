"""The standing notes of a person: what heed keeps in mind, and where each one lives now."""

from aiohttp import web

from bot.http import answers, views
from bot.http.auth import author
from bot.http.openapi import gives
from bot.http.services import SERVICES
from engine.notes import prompt_notes
from storage import notes


@gives(answers.Notes)
async def list_notes(request: web.Request) -> web.Response:
    """`GET /v1/users/{user}/notes`, oldest first, with the prompt tokens the learned ones save."""
    services = request.app[SERVICES]
    user_id = (await services.gateway.known(author(request, request.match_info["user"]))).id
    live = await services.database.read(lambda s: notes.live(s, user_id))
    said = prompt_notes(live, has_adapter=True)
    in_prompt = sum(note.num_tokens for note in said)
    saved = sum(note.num_tokens for note in live) - in_prompt
    data = [views.note(note) for note in live]
    body = answers.Notes(object="list", tokens_saved=saved, tokens_in_prompt=in_prompt, data=data)
    return web.json_response(body)


@gives(answers.Deleted, refuses=(404,))
async def delete_note(request: web.Request) -> web.Response:
    """`DELETE /v1/users/{user}/notes/{id}`: the note goes, and heed is rebuilt without it where it was learned."""
    services = request.app[SERVICES]
    user_id = (await services.gateway.known(author(request, request.match_info["user"]))).id
    note_id = request.match_info["id"]
    await services.database.read(lambda s: notes.get(s, user_id, note_id))
    await services.engine.delete_note(user_id, note_id)
    return web.json_response(answers.Deleted(deleted=note_id))
