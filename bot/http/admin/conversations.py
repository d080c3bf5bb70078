"""`GET /admin/conversations` and one conversation, only of people who let heed learn; each view is recorded."""

from collections.abc import AsyncIterator, Sequence
from typing import Any

from aiohttp import web

from bot.core.gateway import question
from bot.http.admin import access_log, paging, render
from bot.http.protocol.app_keys import CORE
from storage.database import Session
from storage.people import people
from storage.reports import dashboards
from storage.tables import Completion, User

WITHOUT = "calls"  # stands for the calls of a person that belong to no conversation
LIST_HEAD = ("conversation", "person", "name", "platform", "answers", "last_answer_at")
CSV_HEAD = ("id", "created_at", "question", "answer", "version", "finish_reason", "is_gold", "first_token_s", "whole_s")


async def page(request: web.Request) -> web.StreamResponse:
    """List conversations, the most recently answered first, without any of their words (`GET /admin/conversations`)."""
    database, before = request.app[CORE].database, paging.before(request)
    if paging.wants_csv(request):
        return await paging.as_csv(request, "conversations", LIST_HEAD, _list_rows(request))
    found = await database.read(lambda s: dashboards.conversations(s, paging.ROWS, before))
    return render.page(
        request, "conversations.html", "Conversations", found=found, without=WITHOUT, is_first=before is None
    )


async def one(request: web.Request) -> web.StreamResponse:
    """Show one conversation's answers, newest first (`GET /admin/conversations/{person}/{chat}?before=`)."""
    user_id, chat = request.match_info["person"], request.match_info["chat"]
    chat_id, before = (None if chat == WITHOUT else chat), paging.before(request)
    await access_log.record_view(request, (await _person(request, user_id)).id, "conversations", chat)
    if paging.wants_csv(request):
        return await paging.as_csv(request, "conversation", CSV_HEAD, _rows(request, user_id, chat_id))

    def read(s: Session) -> tuple[User, dashboards.Page[Completion]]:
        return people.get(s, user_id), dashboards.answers(s, user_id, chat_id, paging.ROWS, before)

    user, found = await request.app[CORE].database.read(read)
    turns = [(row, question(row)) for row in found.rows]
    return render.page(
        request, "conversation.html", "Conversation", user=user, turns=turns, found=found, is_first=before is None
    )


async def _person(request: web.Request, user_id: str) -> User:
    return await request.app[CORE].database.read(lambda s: people.get(s, user_id))


async def _list_rows(request: web.Request) -> AsyncIterator[Sequence[Sequence[Any]]]:
    async for found in paging.every(request, lambda s, limit, before: dashboards.conversations(s, limit, before)):
        yield [(c.chat_id or WITHOUT, c.user_id, c.display_name, c.platform, c.num_answers, c.last_at_s) for c in found]


async def _rows(request: web.Request, user_id: str, chat_id: str | None) -> AsyncIterator[Sequence[Sequence[Any]]]:
    def read(s: Session, limit: int, before: int | None) -> dashboards.Page[Completion]:
        return dashboards.answers(s, user_id, chat_id, limit, before)

    async for found in paging.every(request, read):
        yield [
            (c.id, c.created_at, question(c), c.text, c.adapter_version, c.finish_reason, c.is_gold,
             c.time_to_first_token_s, c.duration_s)
            for c in found
        ]  # fmt: skip
