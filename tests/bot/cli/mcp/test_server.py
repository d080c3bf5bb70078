"""bot.cli.mcp.server: heed's tools through MCP's own client."""

import asyncio

import pytest
from mcp.client import Client

from bot.cli.client import HeedClient
from bot.cli.mcp.server import server_of
from bot.cli.mcp.tools import HeedTools
from storage.people import api_keys
from storage.tables import ApiKey
from tests.bot.conftest import Heed
from tests.patience import PATIENCE_S


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


async def test_a_key_may_do_what_its_scopes_say(
    heed: Heed, client: HeedClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A refusal names the scope, also that of a training that was asked for."""
    monkeypatch.setattr("bot.access.api_keys.ANY_EVERY_S", 0.0)
    token = api_keys.new_token()
    key = ApiKey(account="ana", sha256=api_keys.digest(token), scopes=["chat"])
    await heed.core.database.write(lambda s: api_keys.add(s, key))
    async with HeedClient(client.url, "", token) as limited, Client(server_of(HeedTools(limited))) as connected:
        answer = await connected.call_tool("chat", {"message": "bees"})
        assert answer.structured_content is not None
        denied = {"completion_id": answer.structured_content["completion_id"], "text": "too long"}
        assert "'feedback'" in str((await connected.call_tool("feedback", denied)).content)
        asked = await connected.call_tool("train", {})
        assert asked.structured_content is not None
        wanted = {"request_id": asked.structured_content["request_id"]}
        async with asyncio.timeout(PATIENCE_S):
            while not (found := await connected.call_tool("training", wanted)).is_error:  # noqa: ASYNC110  heed's to say
                await asyncio.sleep(0.01)
    assert "does not have the scope" in str(found.content)
    assert heed.engine.num_learned == 0
