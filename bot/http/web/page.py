"""The chat page and its files: no external assets, no inline script, nothing cached past a restart."""

from pathlib import Path

from aiohttp import web

from bot.errors import NotFound
from bot.http.protocol import messages
from bot.http.protocol.openapi import PARTLY, gives

HERE = Path(__file__).parent
PAGE = HERE / "templates" / "index.html"
STATIC = HERE / "static"
FILES = {path.name: path for path in STATIC.iterdir()}
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Content-Security-Policy": POLICY,
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}


@gives("text/html", also=PARTLY)
async def page(_: web.Request) -> web.FileResponse:
    """Send the chat page (`GET /`)."""
    return web.FileResponse(PAGE)


@gives("*/*", also=PARTLY, refuses=(404,))
async def file(request: web.Request) -> web.FileResponse:
    """Send one of the files known at start, and no others (`GET /static/{name}`)."""
    name = request.match_info["name"]
    if name not in FILES:
        raise NotFound(messages.NO_FILE.format(name=name[:64]))
    return web.FileResponse(FILES[name])


async def harden(_: web.Request, response: web.StreamResponse) -> None:
    """In place: add the headers that every response carries."""
    for name, value in HEADERS.items():
        response.headers.setdefault(name, value)
    is_file = isinstance(response, web.FileResponse)
    response.headers.setdefault("Cache-Control", "no-cache" if is_file else "no-store")
