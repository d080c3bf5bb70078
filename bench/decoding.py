"""Tokens per second of long answers side by side: all from the base model, then each from another adapter.

Every answer has the same number of tokens, since the end of the turn is forbidden, and its prompt was read in a round
before: so decoding is compared by itself, where `bench.throughput` has answers as they come. One person is taught, and
every other one imports that adapter.
"""

import asyncio
import time
from collections.abc import Sequence

from bench.config import BenchConfig
from bench.figures import Row
from bench.people import share_a_lesson
from bench.throughput import MODELS, Samples, beside_the_base, in_turns, nothing_yet, units
from evals.client import Client
from evals.study import Advance

__all__ = ["measure", "rows", "units"]

TOKENS = 128  # of every answer
QUESTION = "How does a bicycle stay upright?"


async def measure(config: BenchConfig, client: Client, run_id: str, advance: Advance) -> Samples:
    """Tokens per second of every round but the first; the two kinds take turns, so that a busy machine hurts both."""
    users = [f"bench-{run_id}-decoding-{number}" for number in range(config.streams)]
    await share_a_lesson(config, client, users, lambda: advance("decoding"))
    end = await client.end_token(users[0], model=MODELS["base"])
    samples = nothing_yet(config)
    for number in range(config.rounds + 1):
        for kind in in_turns(number):
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
    return beside_the_base(samples, f"decoding {TOKENS} tokens, ", "decoding, ")
