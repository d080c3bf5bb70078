"""From starting the process to the first answer, with an empty data directory each time."""

import time

from bench.config import BenchConfig
from bench.figures import Row, row
from evals.client import Client
from evals.server import HeedServer
from evals.study import Advance

TARGET_S = 40.0
Samples = dict[str, list[float]]


def units(config: BenchConfig) -> int:
    """Return steps of the progress bar."""
    return config.starts


async def measure(config: BenchConfig, advance: Advance) -> Samples:
    """Seconds until /readyz says ready, and until one answer had come."""
    samples: Samples = {"ready_s": [], "answered_s": []}
    for _ in range(config.starts):
        ready_s, answered_s = await _start_once()
        samples["ready_s"].append(ready_s)
        samples["answered_s"].append(answered_s)
        advance("start")
    return samples


async def _start_once() -> tuple[float, float]:
    server = HeedServer()
    started_s = time.perf_counter()
    try:
        ready_s = await server.start()
        async with Client(server.url) as client:
            await client.ask("bench-start", ["hello"])
        return ready_s, time.perf_counter() - started_s
    finally:
        await server.stop()


def rows(samples: Samples) -> list[Row]:
    """Return the rows of the table."""
    return [
        row("start to ready", "s", samples["ready_s"]),
        row("start to first answer", "s", samples["answered_s"], TARGET_S),
    ]
