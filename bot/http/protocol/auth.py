"""The caller of a request, and the checks before heed answers at all: API key, scope, host and origin.

With API keys, a key is a person (`user` names one of several people behind the same key). Without keys heed
listens on loopback only, `user` names a local person, and two checks keep web pages of other sites out: the
Host header must be a name of this machine (DNS rebinding), and a browser's Origin must be heed's own page.
"""

import unicodedata
from urllib.parse import urlsplit

from aiohttp import web
from aiohttp.typedefs import Handler

from bot.access.api_keys import LOCAL_USER, OPERATOR, Holder
from bot.config import HttpSettings
from bot.core.core import Core
from bot.core.stream_places import OWNER
from bot.errors import InvalidField, NotAuthorised, OriginRefused
from bot.events import Author
from bot.http.protocol import messages, scopes
from bot.http.protocol.addresses import client_address
from bot.http.protocol.app_keys import CORE, PLATFORMS
from storage.people.api_keys import Spending

LOOPBACK_NAMES = frozenset({"localhost", "127.0.0.1", "::1"})
GUARDED = ("/v1/", "/api/", "/metrics")
LEADING_ON = ("/v1/dashboard", "/v1/eval")  # to the dashboards, which have a guard of their own
_HOLDER = web.RequestKey("holder", Holder)


@web.middleware
async def guard(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Refuse other sites' pages, and callers without a key if keys are needed."""
    if any(request.path == route.path for route in request.app[PLATFORMS].routes):
        return await handler(request)  # a platform's webhook has a public name and a secret of its own
    core = request.app[CORE]
    await _check_host(request, core)
    _check_origin(request, core.settings.http)
    is_guarded = request.path.startswith(GUARDED) and request.path not in LEADING_ON
    if is_guarded and await core.keys.is_needed():
        request[_HOLDER] = await _key_holder(request)
        scopes.check(request, request[_HOLDER])
    owner = OWNER.set("" if holder(request) is OPERATOR else f"key {holder(request).account}")
    try:
        return await handler(request)
    finally:
        OWNER.reset(owner)


def holder(request: web.Request) -> Holder:
    """Return the holder of the call's API key; the operator if no key is needed."""
    found: Holder = request.get(_HOLDER, OPERATOR)
    return found


def author(request: web.Request, user: str = "", param: str = "user") -> Author:
    """Return the account a request speaks for; `user` is the name it gave as `param`. Raises InvalidField."""
    who, address = holder(request), client_address(request)
    name = _check_name(user.strip(), param)
    if who is OPERATOR:
        return Author("http", name or LOCAL_USER, name or LOCAL_USER, address=address)
    if name in ("", LOCAL_USER, who.account):
        return Author("http", who.account, who.account, who.is_admin, address)
    return Author("http", f"{who.account}/{name}", name, who.is_admin, address)


async def spend(request: web.Request, what: Spending, number: int = 1) -> None:
    """Count messages or updates against the call's API key: all of them, or none. Raises QuotaUsed."""
    await request.app[CORE].keys.spend(holder(request), what, number)


def _check_name(name: str, param: str) -> str:
    if len(name) > 64 or any(unicodedata.category(char) in ("Cc", "Cf", "Cs", "Zl", "Zp") for char in name):
        raise InvalidField(messages.NAME_TOO_LONG, param)
    return name


async def _key_holder(request: web.Request) -> Holder:
    scheme, _, given = request.headers.get("Authorization", "").partition(" ")
    found = await request.app[CORE].keys.holder(given.strip())
    if found is None or scheme.lower() != "bearer":
        raise NotAuthorised(messages.WRONG_KEY if given.strip() else messages.KEY_NEEDED)
    return found


async def _check_host(request: web.Request, core: Core) -> None:
    settings = core.settings.http
    name = _hostname(f"//{request.host}")
    if name in LOOPBACK_NAMES | {settings.host.lower()} | {host.lower() for host in settings.allowed_hosts}:
        return
    if settings.allowed_hosts or not await core.keys.is_needed():  # a rebound page has no key
        raise OriginRefused(messages.UNKNOWN_HOST)


def _check_origin(request: web.Request, settings: HttpSettings) -> None:
    origin = request.headers.get("Origin")
    is_same = origin is None or _netloc(origin) == request.host or _hostname(origin) in settings.allowed_hosts
    is_cross_site = request.headers.get("Sec-Fetch-Site") == "cross-site" and request.method not in ("GET", "HEAD")
    if not is_same or is_cross_site:
        raise OriginRefused(messages.OTHER_ORIGIN)


def _netloc(url: str) -> str:
    try:
        return urlsplit(url).netloc
    except ValueError:
        return ""


def _hostname(url: str) -> str:
    try:
        return (urlsplit(url).hostname or "").lower()
    except ValueError:
        return ""
