"""From a template and its values to a response. Everything is escaped, and admin.js is the only script that may run."""

import math
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from aiohttp import web
from jinja2 import Environment, FileSystemLoader, StrictUndefined

from bot.http.admin.sessions import AdminSession
from bot.http.protocol.app_keys import CORE
from bot.monitoring import stats

TEMPLATES = Path(__file__).parent / "templates"
SESSION = web.RequestKey("admin_session", AdminSession)
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
)
HEADERS = {
    "Content-Security-Policy": POLICY,
    "Referrer-Policy": "same-origin",  # with no-referrer a browser would send its forms with the origin "null"
}
PAGES = {
    "/admin": "Overview",
    "/admin/conversations": "Conversations",
    "/admin/updates": "Updates",
    "/admin/people": "People",
    "/admin/evals": "Evaluations",
    "/admin/model": "Model",
    "/admin/engine": "Engine",
}
NOTHING = "-"


def page(request: web.Request, template: str, title: str, status: int = 200, **values: Any) -> web.Response:
    """Return a page as a response."""
    session = request.get(SESSION)
    frame = {
        "title": title,
        "pages": PAGES,
        "here": "/" + "/".join(request.path.split("/")[1:3]),
        "model": request.app[CORE].settings.model_name,
        "csrf": session.csrf if session else "",
        "is_signed_in": session is not None,
        "address": request.path,
    }
    text = ENVIRONMENT.get_template(template).render(frame | values)
    return web.Response(text=text, content_type="text/html", status=status, headers=HEADERS)


def see_other(address: str) -> web.Response:
    """Return a redirect to another page, after a change."""
    return web.Response(status=303, headers={"Location": address, **HEADERS})


def when(at_s: float | None) -> str:
    """Return a moment as "22 Nov 14:05:09", UTC."""
    return datetime.fromtimestamp(at_s, UTC).strftime("%d %b %H:%M:%S") if at_s else NOTHING


def number(value: float | None, digits: int = 0) -> str:
    """Return a figure with separated thousands, or a dash if there is none."""
    return NOTHING if value is None or not math.isfinite(value) else f"{value:,.{digits}f}"


def counted(value: int, noun: str) -> str:
    """Return a count with its noun: "1 step", "2 steps"."""
    return f"{number(value)} {noun}{'' if value == 1 else 's'}"


def took(value_ms: float | None) -> str:
    """Return a duration as "120 ms" or "1.2 s", or a dash if there is none."""
    return NOTHING if value_ms is None else stats.seconds(value_ms / 1000)


def _environment() -> Environment:
    environment = Environment(
        loader=FileSystemLoader(TEMPLATES), autoescape=True, undefined=StrictUndefined, trim_blocks=True,
        lstrip_blocks=True,
    )  # fmt: skip
    environment.filters |= {
        "when": when,
        "number": number,
        "took": took,
        "counted": counted,
        "size": stats.size,
        "span": stats.span,
    }
    return environment


ENVIRONMENT = _environment()
