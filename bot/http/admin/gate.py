"""The gate before every dashboard: a session for each page, and a form token for each change.

Invariants: without a session, only the sign-in page below /admin is answered; a request that is not a GET must come
from heed's own page by its Origin and carry its session's token; a refused request changes nothing.
"""

import hmac
from urllib.parse import quote

from aiohttp import web
from aiohttp.typedefs import Handler

from bot.access import admin_password
from bot.errors import NotAuthorised, OriginRefused, RequestError
from bot.http.admin import render
from bot.http.admin.sessions import ADMIN_SESSIONS, AdminSession
from bot.http.protocol import messages
from bot.http.protocol.app_keys import CORE
from bot.http.protocol.errors import body_of
from storage.errors import StorageError

COOKIE = "heed_admin"
VISITOR_COOKIE = "heed_visitor"
LOGIN = "/admin/login"
CSRF_FIELD = "csrf"
LIVE_HEADER = "X-Heed-Live"  # sent by a page that reloads itself: this is no use of the session


@web.middleware
async def gate(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Let the operator through to the dashboards, and everyone to all other paths."""
    if request.path != "/admin" and not request.path.startswith("/admin/"):
        return await handler(request)
    try:
        return await _answer(request, handler)
    except (RequestError, StorageError, web.HTTPNotFound) as error:
        return _refusal(request, error)


async def session_of(request: web.Request, *, is_use: bool = True) -> AdminSession | None:
    """Return the open session of a request, if it has one."""
    password = await admin_password.current(request.app[CORE].database)
    token = request.cookies.get(COOKIE, "")
    return request.app[ADMIN_SESSIONS].find(token, password, is_use=is_use) if token else None


async def check_token(request: web.Request, expected: str) -> None:
    """Raise OriginRefused if a form does not carry the expected token."""
    given = (await request.post()).get(CSRF_FIELD, "")
    if not isinstance(given, str) or not hmac.compare_digest(given.encode("utf-8", "replace"), expected.encode()):
        raise OriginRefused(messages.OLD_FORM)


async def _answer(request: web.Request, handler: Handler) -> web.StreamResponse:
    is_change = request.method not in ("GET", "HEAD")
    if is_change and request.headers.get("Origin") is None:
        raise OriginRefused(messages.NO_ORIGIN)
    if request.path == LOGIN:
        return await handler(request)
    session = await session_of(request, is_use=request.headers.get(LIVE_HEADER) is None)
    if session is None:
        if is_change:
            raise NotAuthorised(messages.SIGN_IN_FIRST)
        return render.see_other(f"{LOGIN}?next={quote(request.path_qs, safe='')}")
    request[render.SESSION] = session
    if is_change:
        await check_token(request, session.csrf)
    return await handler(request)


def _refusal(request: web.Request, error: Exception) -> web.Response:
    if isinstance(error, web.HTTPNotFound):
        status, message = 404, messages.NO_PAGE
    else:
        status, body = body_of(request, error)
        message = body["error"]["message"]
    return render.page(request, "error.html", "Refused", status=status, message=message)
