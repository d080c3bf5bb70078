"""Telegram's calls to heed: the secret is looked at before anything is read, and 200 means committed.

Invariants: the secret is compared in constant time; no more than BODY_LIMIT_BYTES are read; an update that could not
be committed gets a 503, and Telegram brings it again.
"""

import hmac
import json
import logging
from collections.abc import Awaitable, Callable
from typing import Any
from urllib.parse import urlsplit

from aiohttp import web

from bot.platforms.telegram.arrivals import update_id

SECRET_HEADER = "X-Telegram-Bot-Api-Secret-Token"  # noqa: S105  a header's name
BODY_LIMIT_BYTES = 256 * 1024

logger = logging.getLogger(__name__)


class Webhook:
    """The route that Telegram posts updates to."""

    def __init__(self, url: str, secret: str, take_all: Callable[[list[Any]], Awaitable[None]]) -> None:
        self.path = urlsplit(url).path or "/"
        self._secret = secret.encode()
        self._take_all = take_all

    def routes(self) -> list[web.RouteDef]:
        """Return what the HTTP server has to serve."""
        return [web.post(self.path, self.handle)]

    async def handle(self, request: web.Request) -> web.Response:
        """Take one update."""
        given = request.headers.get(SECRET_HEADER, "").encode("utf-8", "surrogateescape")
        if not hmac.compare_digest(given, self._secret):
            return web.Response(status=403)
        if request.content_type != "application/json":
            return web.Response(status=415)
        body = await _body(request)
        if body is None:
            return web.Response(status=413)
        try:
            update = json.loads(body)
        except (ValueError, RecursionError):
            return web.Response(status=400)
        if update_id(update) is None:
            return web.Response(status=400)
        return await self._take(update)

    async def _take(self, update: dict[str, Any]) -> web.Response:
        try:
            await self._take_all([update])
        except Exception as error:  # noqa: BLE001  the HTTP edge: Telegram brings it again
            logger.warning("telegram: update %s was not committed (%s)", update_id(update), type(error).__name__)
            return web.Response(status=503)
        return web.Response()


async def _body(request: web.Request) -> bytes | None:
    """Return the body, None if it is too long, anything that its length says."""
    body = b""
    async for chunk in request.content.iter_any():
        body += chunk
        if len(body) > BODY_LIMIT_BYTES:
            return None
    return body
