"""`GET /admin/events`: server-sent events without content, which make an open dashboard load itself anew.

A stream ends with its session, and at once when heed stops.
"""

import asyncio
from contextlib import suppress
from functools import partial

from aiohttp import web

from bot.http.admin.gate import session_of
from bot.http.admin.render import HEADERS
from bot.http.protocol.app_keys import CORE
from bot.http.protocol.event_streams import EventStreams
from storage.errors import DatabaseClosed
from storage.reports import dashboards

POLL_EVERY_S = 2.0
MAX_WATCHERS = 20
_WATCHERS = web.AppKey("admin_watchers", EventStreams)


def prepare(app: web.Application) -> None:
    """In place: start without a watcher."""
    app[_WATCHERS] = EventStreams()


async def events(request: web.Request) -> web.StreamResponse:
    """Stream one event for each new or finished answer, feedback or update."""
    watchers = request.app[_WATCHERS]
    if len(watchers) >= MAX_WATCHERS:
        return web.Response(status=204, headers=HEADERS)  # tells the browser not to come back
    return await watchers.serve(request, partial(_watch, request), HEADERS)


async def end(app: web.Application) -> None:
    """End every stream when heed stops."""
    app[_WATCHERS].end()


async def _watch(request: web.Request, response: web.StreamResponse) -> None:
    database = request.app[CORE].database
    seen = await database.read(dashboards.newest)
    with suppress(DatabaseClosed):  # heed ends
        while await session_of(request, is_use=False):
            found = await database.read(dashboards.newest)
            await response.write(b": nothing new\n\n" if found == seen else b"data: new\n\n")
            seen = found
            await asyncio.sleep(POLL_EVERY_S)
