"""Tokens per second with many answers side by side: all from the base model, then each from another adapter.

One person is taught, and every other one imports that adapter, so that each has files and a slot of their own.
"""

import asyncio
import statistics
import time
from collections.abc import Sequence
from typing import Any

from bench.config import BenchConfig
from bench.figures import Row, row
from bench.people import share_a_lesson
from evals import cases, provenance
from evals.client import Client
from evals.study import BASE_MODEL, Advance

MODELS = {"base": BASE_MODEL, "adapters": "heed"}
TARGET_TIMES = {provenance.POCKET: 1 / 0.7}  # seven tenths of the base model's throughput; of others nine
Samples = dict[str, Any]


def units(config: BenchConfig) -> int:
    """Return steps of the progress bar."""
    return config.streams + config.rounds


async def measure(config: BenchConfig, client: Client, run_id: str, advance: Advance) -> Samples:
    """Tokens per second of every round; the two kinds take turns, so that a busy machine hurts both."""
    users = [f"bench-{run_id}-stream-{number}" for number in range(config.streams)]
    await share_a_lesson(config, client, users, lambda: advance("throughput"))
    target = TARGET_TIMES.get(config.measured_model, 1 / 0.9)
    samples: Samples = {"streams": config.streams, "target": target, **{kind: [] for kind in MODELS}}
    for number in range(config.rounds):
        for kind in list(MODELS)[:: 1 if number % 2 == 0 else -1]:
            samples[kind].append(await _round(config, client, users, kind))
        advance("throughput")
    return samples


async def _round(config: BenchConfig, client: Client, users: Sequence[str], kind: str) -> float:
    started_s = time.perf_counter()
    counts = await asyncio.gather(*(_stream(config, client, user, MODELS[kind]) for user in users))
    return sum(counts) / (time.perf_counter() - started_s)


async def _stream(config: BenchConfig, client: Client, user: str, model: str) -> int:
    """One person asks question after question; the tokens of the answers."""
    count = 0
    for question in cases.probes(config.seed, config.questions, "throughput", user.rpartition("-")[2]):
        count += (await client.ask(user, [question.text], notes="off", model=model))[0].completion_tokens
    return count


def rows(samples: Samples) -> list[Row]:
    """Return the rows of the table, with the ratio of the medians."""
    base, adapters, streams = samples["base"], samples["adapters"], samples["streams"]
    ratio = statistics.median(base) / statistics.median(adapters)
    return [
        row(f"{streams} streams, base model", "tokens/s", base),
        row(f"{streams} streams, {streams} adapters", "tokens/s", adapters),
        Row("  adapters / base", "ratio", 1 / ratio),
        Row("  time of a token, adapters / base", "ratio", ratio, None, samples["target"]),
    ]
