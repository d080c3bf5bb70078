"""bot.cli.mcp.command: `heed mcp` as another program starts it."""

import sys
from pathlib import Path

from mcp.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client

from bot.cli.client import HeedClient

ROOT = Path(__file__).resolve().parents[4]


async def test_a_program_talks_to_heed_on_standard_streams(client: HeedClient) -> None:
    """It lists the tools and calls one."""
    started = StdioServerParameters(
        command=sys.executable, args=["-m", "bot", "mcp", "--user", "ana", "--url", client.url], cwd=ROOT
    )
    async with Client(stdio_client(started)) as connected:
        assert len((await connected.list_tools()).tools) == 5
        given = await connected.call_tool("chat", {"message": "bees"})
    assert given.structured_content is not None
    assert given.structured_content["text"].startswith("You asked about bees.")
