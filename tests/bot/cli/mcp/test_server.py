"""bot.cli.mcp.server: heed's tools through MCP's own client."""

import pytest
from mcp.client import Client

from bot.cli.client import HeedClient
from bot.cli.mcp.server import server_of
from bot.cli.mcp.tools import HeedTools


async def test_every_tool_is_described(client: HeedClient) -> None:
    """With what it takes and what it gives."""
    async with Client(server_of(HeedTools(client))) as connected:
        tools = {tool.name: tool for tool in (await connected.list_tools()).tools}
    assert tools.keys() == {"chat", "feedback", "train", "training", "history"}
    for name, tool in tools.items():
        assert tool.description, name
        assert tool.output_schema, name
        assert all("description" in field for field in tool.input_schema["properties"].values()), name
    assert tools["feedback"].input_schema["required"] == ["completion_id"]


async def test_a_call_gives_an_object(client: HeedClient) -> None:
    """And its text for models that read no objects."""
    async with Client(server_of(HeedTools(client))) as connected:
        given = await connected.call_tool("chat", {"message": "bees"})
    assert given.is_error is not True
    assert given.structured_content is not None
    assert given.structured_content["text"].startswith("You asked about bees.")


@pytest.mark.parametrize(
    ("tool", "arguments", "said"),
    [
        ("feedback", {"completion_id": "none", "text": "too long"}, "No answer 'none'."),
        ("training", {"request_id": "tr-1"}, "There is no training tr-1 here"),
        ("chat", {"message": ""}, "message"),
    ],
)
async def test_a_refusal_is_read_by_the_model(
    client: HeedClient, tool: str, arguments: dict[str, str], said: str
) -> None:
    """In heed's words."""
    async with Client(server_of(HeedTools(client))) as connected:
        given = await connected.call_tool(tool, arguments)
    assert given.is_error
    assert said in str(given.content)
