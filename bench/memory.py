"""The memory of vLLM's worker: at a start, and after one lesson of each of many people.

The worker is the process of heed's that holds most: on a CPU vLLM's, on a GPU its engine. Resident memory is counted,
pages that are shared with others included.
"""

import asyncio
from typing import Any

import psutil

from bench.config import BenchConfig
from bench.figures import Row
from bench.people import person, wish_in_turn
from evals import cases
from evals.client import Client
from evals.server import HeedServer
from evals.study import Advance

TARGET_GB = 2.0  # of a model with 135 million values
TARGET_GROWTH = 1.03
_GB = 1e9
Samples = dict[str, Any]


def units(config: BenchConfig) -> int:
    """Return steps of the progress bar."""
    return config.updates


async def measure(config: BenchConfig, advance: Advance) -> Samples:
    """Bytes after the first answer and after each lesson, and what became of the lessons."""
    server = HeedServer(config.settings)
    try:
        await server.start()
        async with Client(server.url, scope="always") as client:
            return await _measure(config, client, server, advance)
    finally:
        await server.stop()


async def _measure(config: BenchConfig, client: Client, server: HeedServer, advance: Advance) -> Samples:
    await client.ask("bench-memory", ["hello"])
    samples = Samples(bytes=[await worker_bytes(server)], statuses=[])
    for number in range(config.updates):
        learner = person(client, f"bench-memory-{number}")
        wish = wish_in_turn(config.seed, "memory", number)
        lesson = await learner.correct(cases.corrected(config.seed, 1, "memory", number)[0], wish.text)
        samples["statuses"].append(lesson.status)
        samples["bytes"].append(await worker_bytes(server))
        advance("memory")
    return samples


async def worker_bytes(server: HeedServer) -> int:
    """Return the resident bytes of a heed's worker."""
    assert server.pid is not None
    return await asyncio.to_thread(largest_bytes, server.pid)


def largest_bytes(pid: int) -> int:
    """Return the resident bytes of the largest process below this one, itself included. Blocking."""
    heed = psutil.Process(pid)
    found = []
    for process in (heed, *heed.children(recursive=True)):
        try:
            found.append(int(process.memory_info().rss))
        except psutil.NoSuchProcess:
            continue
    return max(found)


def rows(samples: Samples) -> list[Row]:
    """Return the rows of the table."""
    first, *after = samples["bytes"]
    learned = samples["statuses"].count("learned")
    grown = Row(f"  after a lesson of each of {len(after)} people ({learned} learned) / at a start", "ratio",
                after[-1] / first, None, TARGET_GROWTH)  # fmt: skip
    return [Row("worker's memory at a start", "GB", first / _GB, None, TARGET_GB), grown]
