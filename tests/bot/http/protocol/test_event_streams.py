"""bot.http.protocol.event_streams: streams that end with their client and with heed."""

import asyncio

from aiohttp import ClientSession, web
from aiohttp.test_utils import TestServer

from bot.http.protocol.event_streams import EventStreams
from tests.patience import until


class Heed:
    """A server of one stream."""

    def __init__(self) -> None:
        self.streams = EventStreams()
        self.is_over = asyncio.Event()

    async def write(self, response: web.StreamResponse) -> None:
        """Write an event, wait until it is over, and write another."""
        await response.write(b"data: one\n\n")
        await self.is_over.wait()
        await response.write(b"data: two\n\n")

    async def serve(self, request: web.Request) -> web.StreamResponse:
        """Answer with the stream."""
        return await self.streams.serve(request, self.write, {"Cache-Control": "no-store"})

    def server(self) -> TestServer:
        """Return it, not started."""
        app = web.Application()
        app.router.add_get("/", self.serve)
        return TestServer(app)


async def test_a_stream_is_what_is_written_into_it() -> None:
    """With its headers; it is counted while it is open, and ends with its writer."""
    heed = Heed()
    async with heed.server() as server, ClientSession() as client, client.get(server.make_url("/")) as response:
        assert (response.headers["Content-Type"], response.headers["Cache-Control"]) == (
            "text/event-stream",
            "no-store",
        )
        assert await response.content.readline() == b"data: one\n"
        assert len(heed.streams) == 1
        heed.is_over.set()
        assert await response.content.read() == b"\ndata: two\n\n"
        await until(lambda: not heed.streams)


async def test_a_client_that_leaves_ends_its_stream() -> None:
    """What is written after that is no error."""
    heed = Heed()
    async with heed.server() as server, ClientSession() as client:
        async with client.get(server.make_url("/")) as response:
            await response.content.readline()
        heed.is_over.set()
        await until(lambda: not heed.streams)


async def test_all_end_when_heed_stops() -> None:
    """A client sees the end of its stream."""
    heed = Heed()
    async with heed.server() as server, ClientSession() as client, client.get(server.make_url("/")) as response:
        await response.content.readline()
        heed.streams.end()
        assert await response.content.read() == b"\n"
        await until(lambda: not heed.streams)
