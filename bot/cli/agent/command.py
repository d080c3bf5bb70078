"""The command `heed agent`: a folder, a sandbox around it, and the running heed."""

import asyncio
import signal
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from bot.cli import waiting
from bot.cli.client import HeedClient
from bot.cli.connection import Url, client_of
from bot.cli.console import console, guarded, is_terminal, settings
from bot.errors import SandboxUnavailable

commands = typer.Typer()


@commands.command()
def agent(
    folder: Annotated[Path, typer.Argument(exists=True, file_okay=False, help="The folder to work in.")] = Path(),
    user: Annotated[str, typer.Option("--user", "-u", help="Whose adapter answers and learns.")] = "local",
    url: Url = "",
    account: Annotated[str, typer.Option(help="The account that tools run as, where you are root.")] = "",
    may_read: Annotated[bool, typer.Option("--yes-read", help="Do not ask before read, glob and grep.")] = False,
    is_json: Annotated[bool, typer.Option("--json", help="Events as JSON, an object a line, for scripts.")] = False,
) -> None:
    """Work on the files of a folder with a model that asks first and learns from what you deny.

    Tools run in a sandbox: they see the folder and the system's programs, and no network.
    """
    guarded(_agent(client_of(user, url), folder.resolve(), account, may_read=may_read, is_json=is_json))


def _require_apart(folder: Path) -> None:
    """Raise SandboxUnavailable if tools would see heed's data; a folder called so that is not heed's has no lock."""
    from bot.agent.workspaces import HEEDS_OWN, shows_data
    from storage.files.lock import LOCK_NAME

    data_dir = settings().data_dir
    if (data_dir / LOCK_NAME).exists() and shows_data(folder, data_dir):
        raise SandboxUnavailable(HEEDS_OWN.format(folder))


async def _agent(
    connect: Callable[[], HeedClient], folder: Path, account: str, *, may_read: bool, is_json: bool
) -> None:
    from bot.agent.repository import placed, told
    from bot.agent.sandbox import Sandbox
    from bot.agent.session import AgentSession
    from bot.agent.state import SessionState
    from bot.agent.toolbox import Toolbox
    from bot.cli.agent.mind import HttpMind
    from bot.cli.agent.terminal import TerminalAgent
    from bot.cli.agent.views import JsonView, TerminalView
    from bot.cli.terminal import LineSource, PipedLines, PromptLines

    _require_apart(folder)
    sandbox = Sandbox(folder, account)
    await sandbox.try_out()
    is_typed = is_terminal() and not is_json
    lines: LineSource = PromptLines() if is_typed else PipedLines(sys.stdin.readline)
    view = JsonView(console) if is_json else TerminalView(console)
    async with connect() as client:
        await waiting.until_it_answers(client, console)
        toolbox = Toolbox(sandbox)
        git = await toolbox.repository.state()
        mind = HttpMind(client, partial(view.tell, "progress"))
        session = AgentSession(mind, toolbox, SessionState.new(told(git)))
        talk = TerminalAgent(session, client, view, lines)
        if may_read:
            await talk.allow_reading()
        asyncio.get_running_loop().add_signal_handler(signal.SIGINT, talk.interrupt)
        await talk.run(placed(str(folder), git))
