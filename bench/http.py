"""heed's own share of the time to the first piece of a streamed answer, with many streams at once.

What the client waits from sending a question to the first event, less what the engine says it took from being asked to
its first token, of the same answer. So it has everything between: connection, body, person, notes and prompt on the way
in; the event, the socket and the client on the way out.
"""

import asyncio
import statistics
from collections.abc import Iterator

from bench.config import BenchConfig
from bench.figures import Row, row
from evals import cases
from evals.client import Client, FirstPiece
from evals.study import Advance

ADDED_MS = 20.0
Samples = list[dict[str, float]]


def units(config: BenchConfig) -> int:
    """Steps of the progress bar."""
    return config.readers


async def measure(config: BenchConfig, client: Client, run_id: str, advance: Advance) -> Samples:
    """One sample per answer. Everybody has asked something before, and all begin at once."""
    users = [f"bench-{run_id}-http-{number}" for number in range(config.readers)]
    await client.ask(users[0], ["hello"])
    for user in users:
        await client.first_piece(user, "hello")
    read = await asyncio.gather(*(_read(config, client, user, advance) for user in users))
    return [{"seen_ms": piece.seen_s * 1e3, "engine_ms": piece.engine_s * 1e3} for answers in read for piece in answers]


async def _read(config: BenchConfig, client: Client, user: str, advance: Advance) -> list[FirstPiece]:
    """One person asks question after question."""
    questions = cases.probes(config.seed, config.questions, "http", user.rpartition("-")[2])
    found = [await client.first_piece(user, question.text) for question in questions]
    advance("http")
    return found


def added_ms(samples: Samples) -> Iterator[float]:
    """heed's own share of each, in ms."""
    return (sample["seen_ms"] - sample["engine_ms"] for sample in samples)


def rows(samples: Samples) -> list[Row]:
    """The rows of the table."""
    added = list(added_ms(samples))
    p99 = statistics.quantiles(added, n=100, method="inclusive")[-1]
    return [
        row("time to first event, streams at once", "ms", [sample["seen_ms"] for sample in samples]),
        row("  the engine's own, from being asked", "ms", [sample["engine_ms"] for sample in samples]),
        row("  added by HTTP, conversation and client", "ms", added),
        Row("  99th percentile of what is added", "ms", p99, target=ADDED_MS),
    ]
