"""Answers for a thousand people, each with an adapter of their own, beside answers for sixteen; and memory.

One person is taught; every other one imports that adapter, so that each has files and a slot of their own. Then two
groups take turns: a few people, whose adapters all stay in memory, and everybody at random, whose do not.
"""

import asyncio
import random
import statistics
import time
from collections.abc import Sequence
from typing import Any

from bench.config import BenchConfig
from bench.figures import Row, row
from bench.memory import worker_bytes
from bench.people import share_a_lesson
from evals import cases
from evals.client import Client
from evals.server import HeedServer
from evals.study import Advance

FEW, MANY = "few", "many"
TARGET_TIME = 1 / 0.9  # nine tenths of the throughput
_GB = 1e9
Samples = dict[str, Any]


def units(config: BenchConfig) -> int:
    """Return steps of the progress bar."""
    return config.people + config.rounds


async def measure(config: BenchConfig, advance: Advance) -> Samples:
    """Milliseconds a token in every round of either group, and the worker's bytes before and after."""
    server = HeedServer(config.settings)
    try:
        await server.start()
        async with Client(server.url, config.streams) as client:
            return await _measure(config, client, server, advance)
    finally:
        await server.stop()


async def _measure(config: BenchConfig, client: Client, server: HeedServer, advance: Advance) -> Samples:
    everybody = [f"bench-population-{number}" for number in range(config.people)]
    await share_a_lesson(config, client, everybody, lambda: advance("population"))
    groups = {FEW: everybody[: config.streams], MANY: everybody}
    samples = Samples(people=len(everybody), few=[], many=[], bytes=[await worker_bytes(server)])
    for number in range(config.rounds):
        for kind in list(groups)[:: 1 if number % 2 == 0 else -1]:
            samples[kind].append(await _round(config, client, groups[kind], random.Random(f"{config.seed}/{number}")))
        samples["bytes"].append(await worker_bytes(server))
        advance("population")
    return samples


async def _round(config: BenchConfig, client: Client, users: Sequence[str], draws: random.Random) -> float:
    """Let as many ask at once as there are streams, each question by another person. Return ms per token."""
    asking = [draws.choices(users, k=config.questions) for _ in range(config.streams)]
    started_s = time.perf_counter()
    counts = await asyncio.gather(*(_stream(config, client, turns, number) for number, turns in enumerate(asking)))
    return 1000 * (time.perf_counter() - started_s) / sum(counts)


async def _stream(config: BenchConfig, client: Client, users: Sequence[str], number: int) -> int:
    """Ask one question of each person in turn. Return the tokens of the answers."""
    asked = cases.probes(config.seed, len(users), "population", number)
    answers = [await client.ask(user, [q.text], notes="off") for user, q in zip(users, asked, strict=True)]
    return sum(answer.completion_tokens for (answer,) in answers)


def rows(samples: Samples) -> list[Row]:
    """Return the rows of the table, with the ratio of the medians."""
    few, many = samples[FEW], samples[MANY]
    first, *after = samples["bytes"]
    ratio = statistics.median(many) / statistics.median(few)
    return [
        row("answers of a few people's adapters", "ms/token", few),
        row(f"answers of {samples['people']} people's adapters", "ms/token", many),
        Row(f"  {samples['people']} people / a few", "ratio", ratio, None, TARGET_TIME),
        Row("worker's memory, before", "GB", first / _GB),
        Row("  after all rounds / before", "ratio", after[-1] / first),
    ]
