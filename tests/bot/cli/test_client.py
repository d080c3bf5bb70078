"""bot.cli.client: talks to a running heed, and says plainly when there is none."""

from collections.abc import AsyncIterator

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from bot.cli.client import HeedClient
from bot.errors import ServerRefused, ServerUnreachable
from evals.ports import reserved_port
from tests.bot.conftest import Heed


@pytest.fixture
async def client(heed: Heed) -> AsyncIterator[HeedClient]:
    """A client of a running heed."""
    await heed.client.start_server()
    async with HeedClient(str(heed.client.make_url("/")), "ana") as client:
        yield client


async def test_an_answer_comes_in_pieces(client: HeedClient) -> None:
    """The pieces make up the text that is stored in the kept conversation."""
    pieces = [c["choices"][0]["delta"].get("content", "") async for c in client.ask("bees")]
    ((turn,),) = (await client.get("/history?chat=terminal"))["data"]
    assert turn["text"] == "".join(pieces)


async def test_everything_a_command_needs(client: HeedClient) -> None:
    """Feedback, regenerate, commands, and each verb below the person."""
    chunks = [chunk async for chunk in client.ask("bees")]
    learned = await client.feedback({"completion_id": chunks[0]["id"], "kind": "correction", "text": "too long"})
    assert learned["status"] == "learned"
    again = [chunk async for chunk in client.regenerate(chunks[0]["id"])]
    assert again[0]["id"] != chunks[0]["id"]
    assert (await client.command("/versions"))["command"] == "versions"
    assert (await client.post("/rollback", {"version": 0}))["adapter_version"] == 0
    assert (await client.delete()) == {"forgotten": True}


async def test_a_refusal_is_its_message(client: HeedClient) -> None:
    """What heed answers is what the person reads, with the status."""
    with pytest.raises(ServerRefused, match="/help") as refused:
        await client.command("/dance")
    assert refused.value.status == 400


async def test_an_error_in_mid_stream_is_raised(
    client: HeedClient, heed: Heed, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An error event ends the stream as an exception."""

    async def fails(*_: object) -> None:
        raise RuntimeError("no")

    monkeypatch.setattr(heed.core.gateway, "_store", fails)
    with pytest.raises(ServerRefused):
        _ = [chunk async for chunk in client.ask("bees")]


async def test_where_no_heed_runs_it_says_how_to_start_one() -> None:
    """One sentence with the address and the command."""
    with reserved_port() as port:
        async with HeedClient(f"http://127.0.0.1:{port}") as client:
            with pytest.raises(ServerUnreachable, match="`heed run`"):
                await client.ready()


async def test_something_else_is_recognised() -> None:
    """A server that is not heed is not taken for one."""

    async def hello(_: web.Request) -> web.Response:
        return web.Response(text="hello")

    other = web.Application()
    other.add_routes([web.get("/readyz", hello)])
    async with TestServer(other) as server, HeedClient(str(server.make_url("/"))) as client:
        with pytest.raises((ServerRefused, ServerUnreachable)):
            await client.ready()


async def test_names_are_quoted(heed: Heed) -> None:
    """A user's name with a slash stays one part of the path."""
    await heed.client.start_server()
    async with HeedClient(str(heed.client.make_url("/")), "a/b c") as client:
        assert (await client.get())["user"] == "a/b c"
