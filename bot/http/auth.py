"""Who is calling, and whether heed answers at all.

With API keys, a key is a person (`user` names one of several people behind the same key). Without keys heed
listens on loopback only, `user` names a local person, and two checks keep web pages of other sites out: the
Host header must be a name of this machine (DNS rebinding), and a browser's Origin must be heed's own page.
"""

import hmac
import unicodedata
from urllib.parse import urlsplit

from aiohttp import web
from aiohttp.typedefs import Handler

from bot.config import HttpSettings
from bot.errors import InvalidField, NotAuthorised, OriginRefused
from bot.events import Author
from bot.http.services import PLATFORMS, SERVICES

LOOPBACK_NAMES = frozenset({"localhost", "127.0.0.1", "::1"})
LOCAL_USER = "local"
GUARDED = ("/v1/", "/api/", "/metrics")


@web.middleware
async def guard(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Refuse other sites' pages, and callers without a key where keys are set."""
    if any(request.path == route.path for route in request.app[PLATFORMS].routes):
        return await handler(request)  # a platform's call: it comes under a public name, with a secret of its own
    settings = request.app[SERVICES].settings.http
    _check_host(request, settings)
    _check_origin(request, settings)
    if settings.api_keys and request.path.startswith(GUARDED):
        _key_name(request, settings)
    return await handler(request)


def author(request: web.Request, user: str = "", param: str = "user") -> Author:
    """The account a request speaks for; `user` is the name it gave as `param`. Raises InvalidField."""
    settings = request.app[SERVICES].settings.http
    name = _check_name(user.strip(), param)
    if not settings.api_keys:
        return Author("http", name or LOCAL_USER, name or LOCAL_USER)
    key = _key_name(request, settings)
    if name in ("", LOCAL_USER, key):
        return Author("http", key, key)
    return Author("http", f"{key}/{name}", name)


def _check_name(name: str, param: str) -> str:
    if len(name) > 64 or any(unicodedata.category(char) in ("Cc", "Cf", "Cs", "Zl", "Zp") for char in name):
        raise InvalidField("a user's name has at most 64 visible characters", param)
    return name


def _key_name(request: web.Request, settings: HttpSettings) -> str:
    scheme, _, given = request.headers.get("Authorization", "").partition(" ")
    found = ""
    for name, key in settings.api_keys.items():
        known = key.get_secret_value().encode()
        if hmac.compare_digest(known, given.strip().encode("utf-8", "surrogateescape")):
            found = name
    if not found or scheme.lower() != "bearer":
        raise NotAuthorised("an API key is needed: send it as `Authorization: Bearer <key>`")
    return found


def _check_host(request: web.Request, settings: HttpSettings) -> None:
    if settings.api_keys and not settings.allowed_hosts:
        return  # a rebound page has no key
    name = _hostname(f"//{request.host}")
    if name not in LOOPBACK_NAMES | {settings.host.lower()} | {host.lower() for host in settings.allowed_hosts}:
        raise OriginRefused("heed does not answer to this host name; add it to HEED_HTTP_ALLOWED_HOSTS")


def _check_origin(request: web.Request, settings: HttpSettings) -> None:
    origin = request.headers.get("Origin")
    is_same = origin is None or _is_of(origin, request.host) or _hostname(origin) in settings.allowed_hosts
    is_cross_site = request.headers.get("Sec-Fetch-Site") == "cross-site" and request.method not in ("GET", "HEAD")
    if not is_same or is_cross_site:
        raise OriginRefused("heed takes requests from its own page only")


def _is_of(origin: str, host: str) -> bool:
    try:
        return urlsplit(origin).netloc == host
    except ValueError:
        return False


def _hostname(url: str) -> str:
    try:
        return (urlsplit(url).hostname or "").lower()
    except ValueError:
        return ""
