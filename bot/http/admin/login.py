"""Signing in to the dashboards and out again."""

import hmac
import re
import secrets

from aiohttp import web

from bot.access import admin_password
from bot.http.admin import render
from bot.http.admin.attempts import ADMIN_ATTEMPTS
from bot.http.admin.gate import COOKIE, LOGIN, VISITOR_COOKIE, check_token
from bot.http.admin.sessions import ADMIN_SESSIONS, LIFETIME_S
from bot.http.protocol import messages
from bot.http.protocol.addresses import client_address, is_https
from bot.http.protocol.app_keys import CORE

OF_OURS = re.compile(r"/admin(/[A-Za-z0-9/-]*)?(\?[A-Za-z0-9=&%_-]*)?")


async def page(request: web.Request) -> web.Response:
    """Show the sign-in form (`GET /admin/login`)."""
    return _form(request, request.query.get("next", ""))


async def sign_in(request: web.Request) -> web.Response:
    """Open a session for the right password; wrong ones make the next try wait (`POST /admin/login`)."""
    sessions, attempts = request.app[ADMIN_SESSIONS], request.app[ADMIN_ATTEMPTS]
    await check_token(request, sessions.form_token(request.cookies.get(VISITOR_COOKIE, "")))
    form = await request.post()
    next_page, password = str(form.get("next", "")), str(form.get("password", "")).strip()
    address, visitor = client_address(request), request.cookies.get(VISITOR_COOKIE, "")
    wait_s = attempts.begin(address, visitor)
    if wait_s:
        return _refused(request, next_page, wait_s)
    expected = await admin_password.current(request.app[CORE].database)
    if not hmac.compare_digest(admin_password.digest(password), expected):
        return _form(request, next_page, messages.SIGN_IN_REFUSED, status=403)
    attempts.passed(address, visitor)
    sessions.close(request.cookies.get(COOKIE, ""))
    response = render.see_other(_own(next_page))
    _set(request, response, COOKIE, sessions.open(expected), int(LIFETIME_S))
    return response


async def sign_out(request: web.Request) -> web.Response:
    """Close the session (`POST /admin/logout`)."""
    request.app[ADMIN_SESSIONS].close(request.cookies.get(COOKIE, ""))
    response = render.see_other(LOGIN)
    response.del_cookie(COOKIE, path="/admin")
    return response


def _refused(request: web.Request, next_page: str, wait_s: float) -> web.Response:
    seconds = int(wait_s) + 1
    response = _form(request, next_page, messages.TOO_MANY_TRIES.format(seconds=seconds), status=429)
    response.headers["Retry-After"] = str(seconds)
    return response


def _form(request: web.Request, next_page: str, message: str = "", status: int = 200) -> web.Response:
    visitor = request.cookies.get(VISITOR_COOKIE) or secrets.token_urlsafe(32)
    token = request.app[ADMIN_SESSIONS].form_token(visitor)
    values = {"csrf": token, "next_page": _own(next_page), "message": message}
    response = render.page(request, "login.html", "Sign in", status=status, **values)
    _set(request, response, VISITOR_COOKIE, visitor, int(LIFETIME_S))
    return response


def _own(address: str) -> str:
    """Return the address if it is a dashboard's, else the overview's."""
    return address if OF_OURS.fullmatch(address) and not address.startswith(LOGIN) else "/admin"


def _set(request: web.Request, response: web.Response, name: str, value: str, max_age_s: int) -> None:
    is_secure = is_https(request)
    response.set_cookie(
        name, value, max_age=max_age_s, path="/admin", httponly=True, samesite="Strict", secure=is_secure
    )
