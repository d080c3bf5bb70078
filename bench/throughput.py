"""Tokens per second with many answers side by side: all from the base model, then each from another adapter."""

import asyncio
import statistics
import time
from collections.abc import Sequence

from bench.config import BenchConfig
from bench.figures import Row, row
from bench.people import person
from evals import cases
from evals.client import Client
from evals.study import BASE_MODEL, Advance

LESSON = "question"  # leaves answers about as long as they were
MODELS = {"base": BASE_MODEL, "adapters": "heed"}
Samples = dict[str, list[float]]


def units(config: BenchConfig) -> int:
    """Return steps of the progress bar."""
    return config.streams + config.rounds


async def measure(config: BenchConfig, client: Client, run_id: str, advance: Advance) -> Samples:
    """Tokens per second of every round; the two kinds take turns, so that a busy machine hurts both."""
    users = [f"bench-{run_id}-stream-{number}" for number in range(config.streams)]
    for number, user in enumerate(users):
        wish = cases.wish_for(config.seed, (LESSON, 1), "throughput", number)
        await person(client, user).correct(cases.corrected(config.seed, 1, "throughput", number)[0], wish.text)
        advance("throughput")
    samples: Samples = {kind: [] for kind in MODELS}
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


def rows(samples: Samples, streams: int) -> list[Row]:
    """Return the rows of the table, with the ratio of the medians."""
    base, adapters = samples["base"], samples["adapters"]
    return [
        row(f"{streams} streams, base model", "tokens/s", base),
        row(f"{streams} streams, {streams} adapters", "tokens/s", adapters),
        Row("  adapters / base", "ratio", statistics.median(adapters) / statistics.median(base)),
    ]
