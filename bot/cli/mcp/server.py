"""The MCP server on standard streams: heed's tools, with heed's refusals as their answers."""

import functools
from collections.abc import Awaitable, Callable
from typing import Any

from mcp.server.mcpserver import MCPServer
from mcp.server.mcpserver.exceptions import ToolError

from bot.cli.mcp.tools import HeedTools
from bot.errors import BotError

INSTRUCTIONS = (
    "heed answers and learns from corrections, for one person. Ask with chat; when an answer is not as the person "
    "wants it, say so with feedback and its completion_id: the next answers show it."
)


def server_of(tools: HeedTools) -> MCPServer[Any]:
    """Return the server that offers the tools."""
    server: MCPServer[Any] = MCPServer("heed", instructions=INSTRUCTIONS, log_level="WARNING")
    for tool in (tools.chat, tools.feedback, tools.train, tools.training, tools.history):
        server.add_tool(_telling(tool))
    return server


def _telling(tool: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
    """Return a tool whose refusals reach the model that called it."""

    @functools.wraps(tool)
    async def call(*arguments: Any, **named: Any) -> Any:
        try:
            return await tool(*arguments, **named)
        except BotError as error:
            raise ToolError(str(error)) from None

    return call
