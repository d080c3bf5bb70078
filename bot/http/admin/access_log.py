"""A record of every page that shows a person's words to the operator: in the log, and in the person's own export."""

import logging

from aiohttp import web

from bot.http.protocol.addresses import client_address
from bot.http.protocol.app_keys import CORE
from storage.reports import admin_views

logger = logging.getLogger(__name__)


async def record_view(request: web.Request, user_id: str, page: str, about: str) -> None:
    """Record that a page is about to show words of this person."""
    await request.app[CORE].database.write(lambda s: admin_views.note(s, user_id, page, about))
    logger.info("the operator looks at %s %s of %s from %s", page, about, user_id, client_address(request))
