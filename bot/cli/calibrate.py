"""`heed calibrate`: measures which learning rate and which gates the model needs, and keeps them in the data directory.

Starts the model by itself; a heed that runs on the same data directory must be stopped meanwhile. No person's words or
adapters are used.
"""

import asyncio
import time

import typer

from bot.cli.console import console, guarded, settings
from bot.config import Settings
from storage.files.lock import DataDirectoryLock

commands = typer.Typer()


@commands.command()
def calibrate() -> None:
    """Measure what the model needs to learn well: takes minutes; stop heed meanwhile."""
    guarded(_calibrate(settings()))


async def _calibrate(chosen: Settings) -> None:
    from bot.app import build_engine, engine_config
    from storage.database import Database

    config, started_s = engine_config(chosen), time.monotonic()
    with DataDirectoryLock(chosen.data_dir):
        database = await asyncio.to_thread(Database.open, chosen.data_dir, chosen.database_url)
        engine = build_engine(config, database)
        try:
            await engine.start(console.print)
            path = await engine.calibrate(console.print)
        finally:
            await engine.stop()
            await database.close()
    minutes = (time.monotonic() - started_s) / 60
    console.print(f"Calibrated in {minutes:.0f} minutes: {path}. It holds from the next start.")
