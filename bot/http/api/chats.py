"""A person's conversations that heed stores: list, search, rename and delete."""

from typing import Annotated, Literal

from aiohttp import web
from pydantic import Field, StringConstraints

from bot.errors import NotFound
from bot.http.protocol import bodies, messages
from bot.http.protocol.app_keys import CORE
from bot.http.protocol.auth import author
from bot.http.protocol.openapi import gives
from bot.http.protocol.responses import JsonResponse
from storage.conversations import chat_list, chats
from storage.tables import Chat

PLATFORM = "http"


class ChatResponse(JsonResponse):
    """A stored conversation: its name in calls (`heed.chat`), its title, and when it was begun and last used."""

    chat: str
    title: str
    num_answers: int
    created_at: float
    last_at: float


class Chats(JsonResponse):
    """A person's conversations, the last used first."""

    object: Literal["list"]
    data: list[ChatResponse]


class ChatRenamed(JsonResponse):
    """A conversation's new title; empty if that of its first question holds again."""

    chat: str
    title: str


class ChatDeleted(JsonResponse):
    """The conversation that was deleted."""

    deleted: str


class ChatsQuery(bodies.Query):
    """The query of `GET /v1/users/{user}/chats`."""

    search: Annotated[str, StringConstraints(max_length=200)] = ""
    limit: Annotated[int, Field(ge=1, le=bodies.MAX_TURNS)] = 50


class TitleBody(bodies.Body):
    """`PATCH /v1/users/{user}/chats/{chat}`; an empty title is that of the first question."""

    title: Annotated[str, StringConstraints(max_length=chat_list.MAX_TITLE_CHARS, strip_whitespace=True)]


@gives(Chats, asks=ChatsQuery)
async def list_chats(request: web.Request) -> web.Response:
    """List a person's conversations, the last used first (`GET /v1/users/{user}/chats?search=bees`)."""
    core = request.app[CORE]
    asked = bodies.query(request, ChatsQuery)
    user = await core.gateway.known(author(request, request.match_info["user"]))
    found = await core.database.read(lambda s: chat_list.lines(s, user.id, PLATFORM, asked.limit, asked.search.strip()))
    data = [
        ChatResponse(
            chat=line.chat.external_id,
            title=line.title,
            num_answers=line.num_answers,
            created_at=line.chat.created_at,
            last_at=line.last_at_s,
        )
        for line in found
    ]
    return web.json_response(Chats(object="list", data=data))


@gives(ChatRenamed, takes=TitleBody, refuses=(404,))
async def rename(request: web.Request) -> web.Response:
    """Give a conversation a title (`PATCH /v1/users/{user}/chats/{chat}`)."""
    body = await bodies.read(request, TitleBody)
    chat = await _chat(request)
    await request.app[CORE].database.write(lambda s: chat_list.rename(s, chat.id, body.title))
    return web.json_response(ChatRenamed(chat=chat.external_id, title=body.title))


@gives(ChatDeleted, refuses=(404,))
async def delete(request: web.Request) -> web.Response:
    """Delete a conversation; answers that feedback is about stay (`DELETE /v1/users/{user}/chats/{chat}`)."""
    chat = await _chat(request)
    await request.app[CORE].database.write(lambda s: chat_list.erase(s, chat.id))
    return web.json_response(ChatDeleted(deleted=chat.external_id))


async def _chat(request: web.Request) -> Chat:
    core, name = request.app[CORE], request.match_info["chat"]
    user = await core.gateway.known(author(request, request.match_info["user"]))
    found = await core.database.read(lambda s: chats.find(s, user.id, PLATFORM, name))
    if found is None:
        raise NotFound(messages.NO_CHAT.format(name=name[:64]), "chat")
    return found
