"""Every look at what a person wrote is on record: in the log, and in storage where the person's own export shows it."""

import logging

from aiohttp import web

from bot.http.protocol.app_keys import CORE
from storage.reports import admin_views

logger = logging.getLogger(__name__)


async def record_view(request: web.Request, user_id: str, page: str, about: str) -> None:
    """Note that a page is about to show words of this person."""
    await request.app[CORE].database.write(lambda s: admin_views.note(s, user_id, page, about))
    logger.info("the operator looks at %s %s of %s from %s", page, about, user_id, request.remote)
