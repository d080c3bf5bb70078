"""Pages of a list by key, and the whole list as CSV."""

import csv
import io
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Any, TypeVar

from aiohttp import web

from bot.errors import InvalidField
from bot.http.admin.render import HEADERS
from bot.http.protocol import messages
from bot.http.protocol.app_keys import CORE
from storage.database import Session
from storage.reports.dashboards import Page

T = TypeVar("T")
ROWS = 50  # of a page on the screen
CSV_ROWS = 1000  # read at once for a CSV file
_RUNS_AS_FORMULA = ("=", "+", "-", "@", "\t", "\r")


def before(request: web.Request) -> int | None:
    """Return the key that the requested page starts below. Raises InvalidField."""
    text = request.query.get("before", "")
    if not text:
        return None
    if not (text.isascii() and text.isdigit() and len(text) <= 18):
        raise InvalidField(messages.NO_ROW_NUMBER, "before")
    return int(text)


def wants_csv(request: web.Request) -> bool:
    """Return True if the list is requested as a CSV file."""
    return request.query.get("format") == "csv"


async def as_csv(
    request: web.Request, name: str, head: Sequence[str], pages: AsyncIterator[Sequence[Sequence[Any]]]
) -> web.StreamResponse:
    """Stream rows as a file, page by page, so that a long list needs little memory."""
    disposition = {"Content-Disposition": f'attachment; filename="heed-{name}.csv"'}
    response = web.StreamResponse(headers={"Content-Type": "text/csv; charset=utf-8", **disposition, **HEADERS})
    await response.prepare(request)
    await response.write(lines([head]))
    async for rows in pages:
        await response.write(lines(rows))
    await response.write_eof()
    return response


def lines(rows: Sequence[Sequence[Any]]) -> bytes:
    """Return rows as CSV; a text that a spreadsheet would run as a formula gets a quote in front."""
    file = io.StringIO()
    csv.writer(file).writerows([_harmless(cell) for cell in row] for row in rows)
    return file.getvalue().encode("utf-8", "replace")


def _harmless(cell: Any) -> Any:
    return f"'{cell}" if isinstance(cell, str) and cell.startswith(_RUNS_AS_FORMULA) else cell


async def every(
    request: web.Request, read: Callable[[Session, int, int | None], Page[T]]
) -> AsyncIterator[Sequence[T]]:
    """Yield all rows of a list that has pages by key, CSV_ROWS at a time."""
    before: int | None = None
    while True:
        below = before
        found = await request.app[CORE].database.read(
            lambda s: read(s, CSV_ROWS, below)  # noqa: B023  it is awaited here
        )
        yield found.rows
        if found.older is None:
            return
        before = found.older
