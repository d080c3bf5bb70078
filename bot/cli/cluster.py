"""`heed cluster`: one heed with several engines, of which each has some of the people."""

import asyncio
from collections import Counter
from collections.abc import Callable
from functools import partial
from typing import Annotated

import typer
from rich.text import Text

from bot.app import App
from bot.cli import serving
from bot.cli.client import HeedClient
from bot.cli.connection import Url, client_of
from bot.cli.console import WithTerminal, console, guarded, is_terminal, settings
from bot.config import Settings
from bot.membership import Membership, database_url
from bot.monitoring import logs
from engine.cluster import cluster
from storage import leases
from storage.database import Database

commands = typer.Typer(help="heed with several engines, on PostgreSQL and an object store.", no_args_is_help=True)

GATEWAY = "gateway"
ENGINE_NAMES = "engine-"  # what the names of a cluster's engines begin with
OBJECTS_FOLDER = "objects"  # below the data directory, where no other object store is set


@commands.command()
def up(
    num_engines: Annotated[int, typer.Option("--engines", min=1, help="How many engines to start here.")] = 2,
    has_terminal: WithTerminal = True,
) -> None:
    """Start heed with several engines on this machine."""
    chosen = settings()
    logs.begin(chosen.log_level, chosen.log_format)
    guarded(_up(chosen, num_engines, has_terminal=has_terminal and is_terminal()))


@commands.command()
def status(url: Url = "") -> None:
    """Show each engine of the running cluster: how it is, and how many people it has."""
    for line in guarded(_status(settings(), client_of("local", url))):
        console.print(Text(line), soft_wrap=True)


async def _status(chosen: Settings, connect: Callable[[], HeedClient]) -> list[str]:
    url = database_url(chosen)
    async with connect() as client:
        parts = (await client.ready())["parts"]
    database = await asyncio.to_thread(Database.join, chosen.data_dir, url)
    try:
        held = await database.read(leases.num_people)
    finally:
        await database.close()
    num_people = Counter[str]()
    for owner, count in held.items():
        num_people[owner.partition("/")[0]] += count  # an engine that came back is another owner
    engines = {name: state for name, state in parts.items() if name.startswith(ENGINE_NAMES)}
    return [f"{name:<12} {state:<30} {num_people[name]} people" for name, state in sorted(engines.items())]


async def _up(chosen: Settings, num_engines: int, *, has_terminal: bool) -> None:
    url = database_url(chosen)
    folder = (chosen.data_dir / OBJECTS_FOLDER).resolve()
    shared = chosen.model_copy(update={"object_store": chosen.object_store or f"file://{folder}"})
    engine = partial(cluster.engine_with_engines_here, database_url=url, num_engines=num_engines)
    gateway = partial(App, shared, engine_factory=engine, membership=Membership(GATEWAY))
    await serving.serve(gateway, has_terminal=has_terminal)
