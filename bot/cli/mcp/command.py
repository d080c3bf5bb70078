"""The command `heed mcp`."""

from collections.abc import Callable
from typing import Annotated

import typer

from bot.cli.client import HeedClient
from bot.cli.connection import Url, client_of
from bot.cli.console import guarded

commands = typer.Typer()


@commands.command("mcp")
def serve(
    user: Annotated[str, typer.Option("--user", "-u", help="Whose adapter answers and learns.")] = "local",
    url: Url = "",
) -> None:
    """Offer the running heed as tools (chat, feedback, train, history) to a program that speaks MCP on stdio."""
    guarded(_serve(client_of(user, url)))


async def _serve(connect: Callable[[], HeedClient]) -> None:
    from bot.cli.mcp.server import server_of
    from bot.cli.mcp.tools import HeedTools

    async with connect() as client:
        await server_of(HeedTools(client)).run_stdio_async()
