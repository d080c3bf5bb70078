"""bot.platforms.telegram.request: quiet errors, and connections that outlive whoever gives up waiting."""

import asyncio
import logging
import random
from collections.abc import AsyncIterator

import pytest
from telegram import Bot
from telegram import error as telegram_error
from telegram.request import HTTPXRequest

from bot.platforms.telegram.request import Request
from tests.contract.telegram_server import Fault, TelegramServer
from tests.patience import until

CONNECTIONS = 2


@pytest.fixture
async def server() -> AsyncIterator[TelegramServer]:
    """A Bot API server."""
    async with TelegramServer() as server:
        yield server


def bot_on(server: TelegramServer, request: HTTPXRequest) -> Bot:
    """PTB's bot with these requests."""
    return Bot(server.token, f"{server.url}/bot", request=request)


async def test_calls_that_nobody_waits_for_cost_no_connection(server: TelegramServer) -> None:
    """After thousands of calls that were given up at any moment there are as many connections as at first."""
    request, draw = Request(connection_pool_size=CONNECTIONS, pool_timeout=1.0), random.Random(0)
    bot = bot_on(server, request)
    for _ in range(150):
        calls = [asyncio.create_task(bot.get_me()) for _ in range(4 * CONNECTIONS)]
        await asyncio.sleep(draw.uniform(0, 0.01))
        for call in calls:
            call.cancel()
        await asyncio.gather(*calls, return_exceptions=True)
    assert {user.id for user in await asyncio.gather(*(bot.get_me() for _ in range(CONNECTIONS)))} == {server.me["id"]}
    await request.shutdown()


async def test_a_call_waits_for_its_turn(server: TelegramServer) -> None:
    """More calls than connections are made one after another, and none of them is too late."""
    request = Request(connection_pool_size=1, pool_timeout=0.001)
    bot = bot_on(server, request)
    assert len(await asyncio.gather(*(bot.get_me() for _ in range(20)))) == 20
    await request.shutdown()


async def test_a_shutdown_ends_what_hangs(server: TelegramServer) -> None:
    """A call that the server does not answer is over then, for whoever waits for it, too."""
    server.fail("getMe", Fault(200, hangs=True))
    request = Request(connection_pool_size=1)
    call = asyncio.create_task(bot_on(server, request).get_me())
    await until(lambda: server.called("getMe"))
    await request.shutdown()
    with pytest.raises(telegram_error.NetworkError):
        await call
    assert request._calls == set()


@pytest.mark.parametrize("payload", [b'{"ok": true, "resu', b"<html>", b"[]", b'{"ok": true}', b"[" * 100_000, b"\xff"])
def test_an_answer_that_is_none_makes_no_noise(payload: bytes, caplog: pytest.LogCaptureFixture) -> None:
    """The library would log all of it, people's words included."""
    with caplog.at_level(logging.DEBUG), pytest.raises(telegram_error.TelegramError):
        Request.parse_json_payload(payload)
    assert caplog.records == []


def test_a_refusal_is_an_answer() -> None:
    """It has no result."""
    assert Request.parse_json_payload(b'{"ok": false, "description": "no"}')["description"] == "no"
