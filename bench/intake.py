"""heed's own share of an answer on a chat platform: from the update to the first token request, and messages a second.

Everything but the model and the platform is real: database, intake, access, gateway and delivery, on a data directory
of its own.
"""

import asyncio
import statistics
import tempfile
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from bench.config import BenchConfig
from bench.figures import Row
from bench.instant import InstantChannel, InstantEngine, update
from bot.access import Access
from bot.channels import Channels
from bot.config import AccessSettings, HttpSettings, Settings
from bot.consent import Consent
from bot.context import Core
from bot.gateway import Gateway
from bot.lessons import Lessons
from bot.metrics import Metrics
from evals.study import Advance
from storage.database import Database

ADDED_MS = 50.0
PER_SECOND = 300.0
MESSAGES_EACH = 20  # of every chat, where messages a second are measured
ENDLESS = 1_000_000  # messages an hour
Samples = dict[str, list[float]]


def units(config: BenchConfig) -> int:
    """Steps of the progress bar."""
    return config.rounds


async def measure(config: BenchConfig, advance: Advance) -> Samples:
    """Milliseconds added to each message of `chats` that come at once; messages a second of each round."""
    samples: Samples = {"added_ms": [], "per_second": []}
    async with _heed(config.chats) as (channels, engine, channel):
        await _all_at_once(config, channels, engine, channel, 0)  # everybody is new: greetings, first rows
        for number in range(1, config.rounds + 1):
            samples["added_ms"] += await _all_at_once(config, channels, engine, channel, number)
            samples["per_second"].append(await _as_fast_as_it_goes(config, channels, channel, number))
            advance("intake")
    return samples


def rows(samples: Samples) -> list[Row]:
    """The rows of the table."""
    added = samples["added_ms"]
    p99 = statistics.quantiles(added, n=100, method="inclusive")[-1]
    return [
        Row("platform update to token request, chats at once", "ms", statistics.median(added)),
        Row("  99th percentile", "ms", p99, target=ADDED_MS),
        Row("  per message, as fast as it goes", "ms", 1000 / statistics.median(samples["per_second"]),
            target=1000 / PER_SECOND),
    ]  # fmt: skip


@asynccontextmanager
async def _heed(num_chats: int) -> AsyncIterator[tuple[Channels, InstantEngine, InstantChannel]]:
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
        gateway = Gateway(engine, database, settings, metrics)
        lessons = Lessons(gateway, engine, database, settings, metrics)
        access, consent = Access(database, settings), Consent(database, engine, settings)
        core = Core(gateway, lessons, engine, database, settings, access, consent)
        channels = Channels([channel], core, metrics)
        channels.start()
        try:
            yield channels, engine, channel
        finally:
            await channels.stop(5)
            await database.close()


async def _all_at_once(
    config: BenchConfig, channels: Channels, engine: InstantEngine, channel: InstantChannel, number: int
) -> list[float]:
    """One message in each chat at the same moment; the milliseconds until each is with the engine."""
    sent = [update(account, number * 1000) for account in range(config.chats)]
    wanted = channel.shown + len(sent)
    started_s = time.perf_counter()
    await asyncio.gather(*(channels.intake.take(row) for row in sent))
    await _until_shown(channel, wanted)
    return [(engine.asked_s[row.update_id] - started_s) * 1000 for row in sent]


async def _as_fast_as_it_goes(config: BenchConfig, channels: Channels, channel: InstantChannel, number: int) -> float:
    """Many messages in every chat; how many are answered and shown a second."""
    wanted = channel.shown + config.chats * MESSAGES_EACH

    async def chat(account: int) -> None:
        for message in range(1, MESSAGES_EACH + 1):
            await channels.intake.take(update(account, number * 1000 + message))

    started_s = time.perf_counter()
    await asyncio.gather(*map(chat, range(config.chats)))
    await _until_shown(channel, wanted)
    return config.chats * MESSAGES_EACH / (time.perf_counter() - started_s)


async def _until_shown(channel: InstantChannel, wanted: int) -> None:
    while channel.shown < wanted:
        channel.has_shown.clear()
        await channel.has_shown.wait()
