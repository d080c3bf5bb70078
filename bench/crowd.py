"""The effect on people of clients that hold connections and say nothing, or next to nothing.

A few people ask question after question, before, during and after a crowd of them is connected.
"""

import asyncio
import itertools
import time

from bench import idle_clients
from bench.config import BenchConfig
from bench.figures import Row, p99
from bench.wire import Wire
from evals import cases
from evals.client import chat_body
from evals.server import HeedServer
from evals.study import Advance

PEOPLE = 4
RATIO = 1.2
LOG_MB = 1.0
Samples = dict[str, list[float]]


def units(_config: BenchConfig) -> int:
    """Return steps of the progress bar."""
    return 3


async def measure(config: BenchConfig, advance: Advance) -> Samples:
    """Milliseconds to each first event without and with the crowd, and the megabytes that its log grew by."""
    server = HeedServer(config.settings)
    samples = Samples(quiet_ms=[], crowded_ms=[], log_mb=[])
    try:
        await server.start()
        log_bytes = server.log_bytes()
        samples["quiet_ms"] += await _asking(config, server.url, "before", config.crowd_s / 2)
        advance("crowd")
        async with idle_clients.connected(server.url, config.idle_clients, config.slow_clients):
            samples["crowded_ms"] += await _asking(config, server.url, "during", config.crowd_s)
        advance("crowd")
        samples["quiet_ms"] += await _asking(config, server.url, "after", config.crowd_s / 2)
        samples["log_mb"].append((server.log_bytes() - log_bytes) / 1e6)
        advance("crowd")
    finally:
        await server.stop()
    return samples


def rows(samples: Samples) -> list[Row]:
    """Return the rows of the table."""
    quiet, crowded = p99(samples["quiet_ms"]), p99(samples["crowded_ms"])
    return [
        Row("first event, 99th percentile, nobody else", "ms", quiet),
        Row("  with idle and slow clients", "ms", crowded),
        Row("  ratio", "ratio", crowded / quiet, target=RATIO),
        Row("  growth of the log", "MB", samples["log_mb"][0], target=LOG_MB),
    ]


async def _asking(config: BenchConfig, url: str, phase: str, seconds: float) -> list[float]:
    """Let a few people ask one question after the other for a time; milliseconds to each first event."""
    found = await asyncio.gather(*(_one(config, url, f"bench-crowd-{phase}-{n}", seconds) for n in range(PEOPLE)))
    return [value for values in found for value in values]


async def _one(config: BenchConfig, url: str, user: str, seconds: float) -> list[float]:
    wire, found = await Wire.open(url), list[float]()
    questions = itertools.cycle(cases.probes(config.seed, config.questions, "crowd", user))
    end_s = time.perf_counter() + seconds
    while time.perf_counter() < end_s:
        body = chat_body(user, [{"role": "user", "content": next(questions).text}], "auto", "heed") | {"stream": True}
        found.append((await wire.first_piece(body)).seen_s * 1e3)
    await wire.close()
    return found
