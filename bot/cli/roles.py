"""heed on several machines: each process is a gateway (chats, pages, HTTP) or an engine (the model and its trainer)."""

import asyncio
import platform
import signal
from enum import StrEnum
from functools import partial

from bot.cli import serving
from bot.config import Settings
from bot.errors import SettingsError

NEEDS_STORE = "Several machines need HEED_OBJECT_STORE=s3://bucket/heed, or file:// and a folder that all of them see."


class ProcessRole(StrEnum):
    """The part of heed that one process is."""

    ALONE = "alone"
    GATEWAY = "gateway"
    ENGINE = "engine"


async def run(settings: Settings, role: ProcessRole, name: str, *, has_terminal: bool) -> None:
    """Run one part of a cluster until it is ended. `name`: unlike any other's of the cluster; "" for the machine's.

    Raises SettingsError where something is missing that all parts share, and as App.run.
    """
    from bot.app import App
    from bot.membership import Membership, database_url
    from engine.cluster import cluster

    url, own = database_url(settings), f"{role}-{name or platform.node()}"
    if not settings.object_store:
        raise SettingsError(NEEDS_STORE)
    if role == ProcessRole.ENGINE:
        await _run_engine(own, settings, url)
    else:
        gateway = partial(App, settings, engine_factory=cluster.engine_of_gateway, membership=Membership(own))
        await serving.serve(gateway, has_terminal=has_terminal)


async def _run_engine(name: str, settings: Settings, url: str) -> None:
    """Have an engine on this machine until a signal comes; then its people go to the others first."""
    from bot.app import engine_config
    from engine.cluster import cluster

    progress, ending = serving.progress(), asyncio.Event()
    engine = cluster.engine_here(name, engine_config(settings), url)
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, ending.set)
    working = asyncio.ensure_future(engine.start(progress))
    waiting = asyncio.create_task(ending.wait())
    try:
        await asyncio.wait({working, waiting}, return_when=asyncio.FIRST_COMPLETED)
        if working.done():
            await working  # raises what went wrong
        await waiting
        progress("its people go to the other engines")
    finally:
        working.cancel()
        waiting.cancel()
        await asyncio.gather(working, waiting, return_exceptions=True)
        await engine.stop()
