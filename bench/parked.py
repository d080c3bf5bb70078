"""The cost of a chat whose platform makes it wait: the time from update to shown answer of the other chats.

Two heeds take turns on the same machine, burst by burst. In both every chat sends a message at the same moment; in one
of them the platform tells one chat to wait a minute each time something is posted there. Judged is the median of what
each pair of bursts shows: what else the machine does meanwhile hits both of a pair, or one pair of many.
"""

import asyncio
import statistics
import time
from collections.abc import Sequence
from contextlib import AsyncExitStack
from itertools import chain

from bench.between import Between, running
from bench.config import BenchConfig
from bench.figures import Row, p95, row
from bench.instant import update
from evals.study import Advance

TARGET_RATIO = 1.10
BURSTS = 20  # a round, of each of the two
SLOW = 0  # the account of the chat that is made to wait
WITH, WITHOUT = "while one chat waits", "while none waits"
Samples = dict[str, list[list[float]]]


def units(config: BenchConfig) -> int:
    """Return steps of the progress bar."""
    return config.rounds


async def measure(config: BenchConfig, advance: Advance) -> Samples:
    """Milliseconds until the answer was shown: of each burst those of the other chats."""
    samples: Samples = {WITH: [], WITHOUT: []}
    async with AsyncExitStack() as stack:
        heeds = {kind: await stack.enter_async_context(running(config.chats)) for kind in samples}
        for heed in heeds.values():
            await _burst(config, heed, 0)  # everybody is new: greetings, first rows
        heeds[WITH].channel.slow_account = str(SLOW)
        for number in range(1, config.rounds * BURSTS + 1):
            for kind in list(heeds)[:: 1 if number % 2 == 0 else -1]:
                samples[kind].append(await _burst(config, heeds[kind], number))
            if number % BURSTS == 0:
                advance("parked")
    return samples


def rows(samples: Samples) -> list[Row]:
    """Return the rows of the table."""
    return [
        *(row(f"update to shown answer, {kind}", "ms", list(chain(*samples[kind]))) for kind in (WITHOUT, WITH)),
        Row("  p95 of a burst, with / without", "ratio", _ratio(samples[WITH], samples[WITHOUT]), target=TARGET_RATIO),
    ]


def _ratio(with_ms: Sequence[list[float]], without_ms: Sequence[list[float]]) -> float:
    return statistics.median(p95(a) / p95(b) for a, b in zip(with_ms, without_ms, strict=True))


async def _burst(config: BenchConfig, heed: Between, number: int) -> list[float]:
    """One message in each chat at the same moment; the milliseconds until the others have their answers."""
    accounts = range(config.chats)
    others = [str(account) for account in accounts if account != SLOW]
    heed.channel.shown_s.clear()
    started_s = time.perf_counter()
    await asyncio.gather(*(heed.channels.inbox.take(update(account, number)) for account in accounts))
    await heed.channel.until_shown_to(others if heed.channel.slow_account else [*others, str(SLOW)])
    return [(heed.channel.shown_s[account] - started_s) * 1000 for account in others]
