"""Everything between a model and a chat platform, real: database, inbox, access, gateway and outbox, on a folder.

The model and the platform are `bench.instant`'s, so that what is timed is heed's own.
"""

import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.instant import InstantChannel, InstantEngine
from bot.account_settings import AccessSettings
from bot.agent.service import AgentService
from bot.app import keep_for_good
from bot.config import HttpSettings, Settings
from bot.core.core import Core
from bot.messaging.supervisor import ChannelSupervisor
from bot.monitoring.metrics import Metrics
from storage.database import Database

ENDLESS = 1_000_000  # messages an hour


@dataclass(frozen=True)
class Between:
    """One heed that runs, and what stands at its ends."""

    channels: ChannelSupervisor
    engine: InstantEngine
    channel: InstantChannel


@asynccontextmanager
async def running(num_chats: int) -> AsyncIterator[Between]:
    """Provide a heed that lets everyone in and answers `num_chats` at once."""
    engine: Any = InstantEngine()
    channel = InstantChannel()
    with tempfile.TemporaryDirectory(prefix="heed-bench-") as folder:
        settings = Settings(
            data_dir=Path(folder),
            http=HttpSettings(max_streams=num_chats),
            access=AccessSettings(mode="open", messages_per_hour=ENDLESS),
        )
        database = Database.open(settings.data_dir)
        metrics = Metrics()
        core = Core.build(settings, database, engine, metrics)
        channels = ChannelSupervisor([channel], core, metrics, AgentService(core))
        keep_for_good()
        channels.start()
        try:
            yield Between(channels, engine, channel)
        finally:
            await channels.stop(timeout_s=0)  # what was measured has been shown
            await database.close()
