"""The id of a call, in the `X-Request-Id` of every response: the caller's own if it sent a usable one."""

import re
import uuid

from aiohttp import web

HEADER = "X-Request-Id"
_USABLE = re.compile(r"[A-Za-z0-9._:-]{1,128}")
_ID = web.RequestKey("request_id", str)


def request_id(request: web.Request) -> str:
    """Return the call's id: up to 128 letters, digits and ._:- from the caller, or a fresh one."""
    if _ID not in request:
        given = request.headers.get(HEADER, "")
        request[_ID] = given if _USABLE.fullmatch(given) else f"req_{uuid.uuid4().hex}"
    return request[_ID]


async def sign(request: web.Request, response: web.StreamResponse) -> None:
    """In place: add the call's id to the response."""
    response.headers[HEADER] = request_id(request)
