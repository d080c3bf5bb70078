"""bot.http.admin.live: an open page is told of news as long as its session is open."""

import asyncio

import pytest
from aiohttp import web

from bot.http.admin import live
from tests.bot.http.admin.rig import Operator
from tests.patience import PATIENCE_S


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Poll often."""
    monkeypatch.setattr(live, "POLL_EVERY_S", 0.01)


async def test_something_new_is_told_without_a_word_of_it(operator: Operator) -> None:
    """A new answer causes an event without content."""
    response = await operator.heed.client.get("/admin/events")
    assert response.content_type == "text/event-stream"
    assert await asyncio.wait_for(response.content.readline(), PATIENCE_S) == b": nothing new\n"
    await operator.heed.ask("bees", user="ana")
    async with asyncio.timeout(PATIENCE_S):
        while not (line := await response.content.readline()).startswith(b"data"):
            pass
    assert line == b"data: new\n"
    response.close()


async def test_the_stream_ends_with_the_session(operator: Operator) -> None:
    """The stream ends when the operator signs out."""
    response = await operator.heed.client.get("/admin/events")
    await operator.act("/admin/logout")
    async with asyncio.timeout(PATIENCE_S):
        assert b"data" not in await response.content.read()


async def test_the_streams_end_when_heed_ends(operator: Operator) -> None:
    """Streams end at once when heed stops, without waiting for pages to close."""
    app: web.Application = operator.heed.client.server.app  # type: ignore[attr-defined]
    response = await operator.heed.client.get("/admin/events")
    await live.end(app)
    async with asyncio.timeout(PATIENCE_S):
        await response.content.read()


async def test_a_bounded_number_of_pages_is_told(operator: Operator, monkeypatch: pytest.MonkeyPatch) -> None:
    """One page too many is answered with 204, which tells its browser not to come back."""
    monkeypatch.setattr(live, "MAX_WATCHERS", 1)
    first = await operator.heed.client.get("/admin/events")
    await first.content.readline()
    assert (await operator.heed.client.get("/admin/events")).status == 204
    first.close()
