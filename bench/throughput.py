"""Tokens per second with many answers side by side: all from the base model, then each from another adapter.

One person is taught, and every other one imports that adapter, so that each has files and a slot of their own. The base
model's answers end where the adapters' do: a lesson makes answers longer or shorter, and short ones are mostly prompts.
"""

import asyncio
import statistics
import time
from collections.abc import Mapping, Sequence
from typing import Any

from bench.config import BenchConfig
from bench.figures import Row, row
from bench.people import share_a_lesson
from evals import cases, provenance
from evals.client import Answer, Client
from evals.study import BASE_MODEL, Advance

MODELS = {"base": BASE_MODEL, "adapters": "heed"}
TARGET_TIMES = {provenance.POCKET: 1 / 0.7}  # seven tenths of the base model's throughput; of others nine
Samples = dict[str, Any]


def units(config: BenchConfig) -> int:
    """Return steps of the progress bar."""
    return config.streams + 1 + config.rounds


async def measure(config: BenchConfig, client: Client, run_id: str, advance: Advance) -> Samples:
    """Tokens per second of every round; the two kinds take turns, so that a busy machine hurts both."""
    users = [f"bench-{run_id}-stream-{number}" for number in range(config.streams)]
    await share_a_lesson(config, client, users, lambda: advance("throughput"))
    lengths = await asyncio.gather(*(_lengths(config, client, user) for user in users))
    limits = dict(zip(users, lengths, strict=True))
    advance("throughput")
    samples = nothing_yet(config) | {"limits": limits}
    for number in range(config.rounds):
        for kind in in_turns(number):
            samples[kind].append(await _round(config, client, limits, kind))
        advance("throughput")
    return samples


def nothing_yet(config: BenchConfig) -> Samples:
    """Return samples without a round, with what they are judged by."""
    target = TARGET_TIMES.get(config.measured_model, 1 / 0.9)
    return {"streams": config.streams, "target": target, **{kind: [] for kind in MODELS}}


def in_turns(number: int) -> list[str]:
    """Return the kinds in the order of a round: they take turns, so that a busy machine hurts both."""
    return list(MODELS)[:: 1 if number % 2 == 0 else -1]


async def _lengths(config: BenchConfig, client: Client, user: str) -> list[int]:
    """Return how many tokens the person's adapter answers each question with."""
    answers = [await _answer(client, user, question, "adapters") for question in _questions(config, user)]
    return [answer.completion_tokens for answer in answers]


async def _round(config: BenchConfig, client: Client, limits: Mapping[str, Sequence[int]], kind: str) -> float:
    started_s = time.perf_counter()
    counts = await asyncio.gather(*(_stream(config, client, user, limits[user], kind) for user in limits))
    return sum(counts) / (time.perf_counter() - started_s)


async def _stream(config: BenchConfig, client: Client, user: str, limits: Sequence[int], kind: str) -> int:
    """One person asks question after question; the tokens of the answers, none longer than its limit."""
    count = 0
    for question, limit in zip(_questions(config, user), limits, strict=True):
        count += (await _answer(client.brief(limit), user, question, kind)).completion_tokens
    return count


async def _answer(client: Client, user: str, question: str, kind: str) -> Answer:
    return (await client.ask(user, [question], notes="off", model=MODELS[kind]))[0]


def _questions(config: BenchConfig, user: str) -> list[str]:
    probes = cases.probes(config.seed, config.questions, "throughput", user.rpartition("-")[2])
    return [question.text for question in probes]


def rows(samples: Samples) -> list[Row]:
    """Return the rows of the table, with the ratio of the medians."""
    tokens = [float(length) for lengths in samples["limits"].values() for length in lengths]
    return [row("  most tokens of an answer", "tokens", tokens), *beside_the_base(samples)]


def beside_the_base(samples: Samples, of_all: str = "", of_ratios: str = "") -> list[Row]:
    """Return the rows of both kinds and of their ratio; the words are put before the names of either."""
    base, adapters, streams = samples["base"], samples["adapters"], samples["streams"]
    ratio = statistics.median(base) / statistics.median(adapters)
    return [
        row(f"{of_all}{streams} streams, base model", "tokens/s", base),
        row(f"{of_all}{streams} streams, {streams} adapters", "tokens/s", adapters),
        Row(f"  {of_ratios}adapters / base", "ratio", 1 / ratio),
        Row(f"  {of_ratios}time of a token, adapters / base", "ratio", ratio, None, samples["target"]),
    ]
