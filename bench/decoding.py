"""Tokens per second of long answers side by side: all from the base model, then each from another adapter.

Every answer has the same number of tokens, since the end of the turn is forbidden, and its prompt was read in a round
before: so decoding is compared by itself, where `bench.throughput` has answers as they come. One person is taught, and
every other one imports that adapter.
"""

import asyncio
import statistics
import time
from collections.abc import Sequence
from typing import Any

from bench.config import BenchConfig
from bench.figures import Row, row
from bench.people import share_a_lesson
from bench.throughput import MODELS, TARGET_TIMES
from evals.client import Client
from evals.study import Advance

TOKENS = 128  # of every answer
QUESTION = "How does a bicycle stay upright?"
Samples = dict[str, Any]


def units(config: BenchConfig) -> int:
    """Return steps of the progress bar."""
    return config.streams + 1 + config.rounds


async def measure(config: BenchConfig, client: Client, run_id: str, advance: Advance) -> Samples:
    """Tokens per second of every round but the first; the two kinds take turns, so that a busy machine hurts both."""
    users = [f"bench-{run_id}-decoding-{number}" for number in range(config.streams)]
    await share_a_lesson(config, client, users, lambda: advance("decoding"))
    end = await client.end_token(users[0], model=MODELS["base"])
    target = TARGET_TIMES.get(config.measured_model, 1 / 0.9)
    samples: Samples = {"streams": config.streams, "target": target, **{kind: [] for kind in MODELS}}
    for number in range(config.rounds + 1):
        for kind in list(MODELS)[:: 1 if number % 2 == 0 else -1]:
            rate = await _round(client, users, MODELS[kind], end)
            samples[kind] += [rate] if number else []  # the first reads the prompts
        advance("decoding")
    return samples


async def _round(client: Client, users: Sequence[str], model: str, end: int) -> float:
    started_s = time.perf_counter()
    counts = await asyncio.gather(*(client.endless(user, QUESTION, TOKENS, end, model=model) for user in users))
    return sum(counts) / (time.perf_counter() - started_s)


def rows(samples: Samples) -> list[Row]:
    """Return the rows of the table, with the ratio of the medians."""
    base, adapters, streams = samples["base"], samples["adapters"], samples["streams"]
    ratio = statistics.median(base) / statistics.median(adapters)
    return [
        row(f"decoding {TOKENS} tokens, {streams} streams, base model", "tokens/s", base),
        row(f"decoding {TOKENS} tokens, {streams} streams, {streams} adapters", "tokens/s", adapters),
        Row("  decoding, adapters / base", "ratio", 1 / ratio),
        Row("  decoding, time of a token, adapters / base", "ratio", ratio, None, samples["target"]),
    ]
