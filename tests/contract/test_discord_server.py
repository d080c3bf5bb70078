"""tests.contract.discord_server: that it behaves as Discord does where no test of the platform looks."""

import asyncio
import logging
from urllib.parse import urlsplit

import pytest

from tests.contract.discord_server import DiscordServer
from tests.patience import until


async def test_a_caller_who_gives_up_while_sending_is_no_error(caplog: pytest.LogCaptureFixture) -> None:
    """Nothing is done, and nothing is logged as an error: a storm reads the same log for errors of heed."""
    server = DiscordServer()
    await server.start()
    at = urlsplit(server.api_base)
    _, writer = await asyncio.open_connection(at.hostname, at.port)
    head = "POST /api/v10/channels/500/messages HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n"
    writer.write(f'{head}Content-Type: application/json\r\n\r\n{{"content": "be'.encode())
    await writer.drain()
    await until(lambda: server.num_open == 1)
    writer.close()
    await writer.wait_closed()
    await until(lambda: server.num_open == 0)
    await server.stop()
    assert server.calls == []
    assert [record.getMessage() for record in caplog.records if record.levelno >= logging.ERROR] == []
