"""heed's own share of an answer on a chat platform: from the update to the first token request, and messages a second.

Everything but the model and the platform is real (`bench.between`).
"""

import asyncio
import statistics
import time

from bench.between import Between, running
from bench.config import BenchConfig
from bench.figures import Row
from bench.instant import update
from evals.study import Advance

ADDED_MS = 50.0
PER_SECOND = 300.0
MESSAGES_EACH = 20  # of every chat, where messages a second are measured
Samples = dict[str, list[float]]


def units(config: BenchConfig) -> int:
    """Return steps of the progress bar."""
    return config.rounds


async def measure(config: BenchConfig, advance: Advance) -> Samples:
    """Milliseconds added to each message of `chats` that come at once; messages a second of each round."""
    samples: Samples = {"added_ms": [], "per_second": []}
    async with running(config.chats) as heed:
        await _all_at_once(config, heed, 0)  # everybody is new: greetings, first rows
        for number in range(1, config.rounds + 1):
            samples["added_ms"] += await _all_at_once(config, heed, number)
            samples["per_second"].append(await _as_fast_as_it_goes(config, heed, number))
            advance("intake")
    return samples


def rows(samples: Samples) -> list[Row]:
    """Return the rows of the table."""
    added = samples["added_ms"]
    p99 = statistics.quantiles(added, n=100, method="inclusive")[-1]
    return [
        Row("platform update to token request, chats at once", "ms", statistics.median(added)),
        Row("  99th percentile", "ms", p99, target=ADDED_MS),
        Row("  per message, as fast as it goes", "ms", 1000 / statistics.median(samples["per_second"]),
            target=1000 / PER_SECOND),
    ]  # fmt: skip


async def _all_at_once(config: BenchConfig, heed: Between, number: int) -> list[float]:
    """One message in each chat at the same moment; the milliseconds until each is with the engine."""
    sent = [update(account, number * 1000) for account in range(config.chats)]
    wanted = heed.channel.shown + len(sent)
    started_s = time.perf_counter()
    await asyncio.gather(*(heed.channels.inbox.take(row) for row in sent))
    await heed.channel.until_shown(wanted)
    return [(heed.engine.asked_s[row.update_id] - started_s) * 1000 for row in sent]


async def _as_fast_as_it_goes(config: BenchConfig, heed: Between, number: int) -> float:
    """Many messages in every chat; how many are answered and shown a second."""
    wanted = heed.channel.shown + config.chats * MESSAGES_EACH

    async def chat(account: int) -> None:
        for message in range(1, MESSAGES_EACH + 1):
            await heed.channels.inbox.take(update(account, number * 1000 + message))

    started_s = time.perf_counter()
    await asyncio.gather(*map(chat, range(config.chats)))
    await heed.channel.until_shown(wanted)
    return config.chats * MESSAGES_EACH / (time.perf_counter() - started_s)
