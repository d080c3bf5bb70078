"""The core without HTTP: database, fake engine, gateway, outbox, and a platform in memory."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bot.config import Settings
from bot.core.core import Core
from bot.core.gateway import Gateway
from bot.messaging.outbox import OutboxSender
from bot.monitoring.metrics import Metrics
from engine.config import EngineConfig
from storage.database import Database
from storage.tables import Inbox
from tests.bot.fake_channel import FakeChannel, FakePlatform
from tests.bot.fake_engine import FakeEngine
from tests.patience import until


@dataclass
class Rig:
    """One running core on a data directory; another can follow it, as after a restart."""

    settings: Settings
    database: Database
    engine: FakeEngine
    core: Core
    channel: FakeChannel
    outbox: OutboxSender
    metrics: Metrics

    @property
    def gateway(self) -> Gateway:
        """The core's gateway."""
        return self.core.gateway

    async def take(self, row: Inbox) -> Inbox:
        """An update as the inbox keeps it."""
        from storage.conversations import inbox

        taken, _ = await self.database.write(lambda s: inbox.add(s, row))
        return taken

    async def shown(self) -> FakePlatform:
        """The platform once everything queued has been shown."""
        await until(lambda: self.outbox.num_waiting == 0)
        return self.channel.shown


@asynccontextmanager
async def rig(
    data_dir: Path, channel: FakeChannel, *, sleep: Callable[[float], Any] = asyncio.sleep, **settings: Any
) -> AsyncIterator[Rig]:
    """A core on a data directory, until the block ends."""
    chosen = Settings(data_dir=data_dir, **({"access": {"mode": "open"}} | settings))
    database = Database.open(data_dir)
    engine: Any = FakeEngine(EngineConfig("fake", data_dir), database)
    await engine.start(lambda _: None)
    metrics = Metrics()
    core = Core.build(chosen, database, engine, metrics)
    outbox = OutboxSender(database, core.gateway, metrics, {channel.platform: channel}, sleep=sleep)
    await outbox.open(channel.platform)
    try:
        yield Rig(chosen, database, engine, core, channel, outbox, metrics)
    finally:
        await outbox.drain(0)
        await core.lessons.drain()
        await database.close()
