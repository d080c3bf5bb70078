"""`heed cluster`: one heed with several engines, of which each has some of the people."""

from collections.abc import Callable
from functools import partial
from typing import Annotated

import typer
from prometheus_client import Metric
from prometheus_client.parser import text_string_to_metric_families
from rich.table import Table
from rich.text import Text

from bot.cli import serving
from bot.cli.client import HeedClient
from bot.cli.connection import Url, client_of
from bot.cli.console import WithTerminal, console, guarded, is_terminal, settings
from bot.config import Settings
from bot.monitoring import logs

commands = typer.Typer(help="heed with several engines, on PostgreSQL and an object store.", no_args_is_help=True)

GATEWAY = "gateway"
ENGINE_NAMES = "engine-"  # what the names of a cluster's engines begin with
FIGURES = {  # the columns of the status, by metric
    "heed_engine_people": "people",
    "heed_engine_streams": "answers now",
    "heed_engine_lessons": "lessons now",
    "heed_engine_adapters": "adapters",
    "heed_engine_people_taken_over": "taken over",
    "heed_engine_adapters_read": "read",
    "heed_engine_adapters_fetched": "fetched",
}
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
    """Show each engine of the running cluster: how it is, whom it has, what it does and what it has done."""
    console.print(guarded(_status(client_of("local", url))))


async def _status(connect: Callable[[], HeedClient]) -> Table:
    async with connect() as client:
        parts = (await client.ready())["parts"]
        families = {family.name: family for family in text_string_to_metric_families(await client.metrics())}
    table = Table("engine", "state", box=None)
    for name in FIGURES.values():
        table.add_column(name, justify="right")
    for engine, state in sorted(parts.items()):
        if engine.startswith(ENGINE_NAMES):
            found = {metric: _of(engine, families[metric]) for metric in FIGURES}
            table.add_row(Text(engine), Text(state), *found.values())
    return table


def _of(engine: str, family: Metric) -> str:
    """Return an engine's figure; nothing of one that does not answer."""
    return next((f"{sample.value:.0f}" for sample in family.samples if sample.labels["engine"] == engine), "")


async def _up(chosen: Settings, num_engines: int, *, has_terminal: bool) -> None:
    from bot.app import App
    from bot.membership import Membership, database_url
    from engine.cluster import cluster

    url = database_url(chosen)
    folder = (chosen.data_dir / OBJECTS_FOLDER).resolve()
    shared = chosen.model_copy(update={"object_store": chosen.object_store or f"file://{folder}"})
    engine = partial(cluster.engine_with_engines_here, database_url=url, num_engines=num_engines)
    gateway = partial(App, shared, engine_factory=engine, membership=Membership(GATEWAY))
    await serving.serve(gateway, has_terminal=has_terminal)
