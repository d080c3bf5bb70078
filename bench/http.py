"""heed's own share of the time to the first piece of a streamed answer, with many streams at once.

What the client waits from sending a question to the first event, less what the engine says it took from being asked to
its first token, of the same answer. So it has everything between: body, person and conversation on the way in; the
event, the socket and the client on the way out. People ask one question after the other and begin one after the other,
as people do; what it costs where all ask in the same instant is measured, too.
"""

import asyncio
import statistics
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager

from bench.config import BenchConfig
from bench.figures import Row, row
from bench.wire import FirstPiece, Wire
from evals import cases
from evals.client import Client, chat_body
from evals.study import Advance

ADDED_MS = 20.0
SPREAD_S = 1.0  # over which the readers begin: about as long as an answer takes where so many are written
Sample = dict[str, float]
Samples = dict[str, list[Sample]]


def units(config: BenchConfig) -> int:
    """Return steps of the progress bar."""
    return config.readers


async def measure(config: BenchConfig, client: Client, run_id: str, advance: Advance) -> Samples:
    """One sample per answer. Everybody has asked something before, over the connection they keep."""
    readers = [f"bench-{run_id}-http-{number}" for number in range(config.readers)]
    async with _wires(client.url, config.readers) as wires:
        people = list(zip(readers, wires, strict=True))
        for user, wire in people:
            await wire.first_piece(_question(user, "hello"))
        at_once = await asyncio.gather(*(wire.first_piece(_question(user, "hello again")) for user, wire in people))
        read = await asyncio.gather(
            *(_read(config, user, wire, SPREAD_S * n / len(people), advance) for n, (user, wire) in enumerate(people))
        )
    return {"streams": _samples(piece for pieces in read for piece in pieces), "at once": _samples(at_once)}


def rows(samples: Samples) -> list[Row]:
    """Return the rows of the table."""
    streams, at_once = samples["streams"], samples["at once"]
    return [
        row("time to first event, many streams", "ms", [sample["seen_ms"] for sample in streams]),
        row("  the engine's own, from being asked", "ms", [sample["engine_ms"] for sample in streams]),
        row("  added by HTTP, conversation and client", "ms", added_ms(streams)),
        Row("  99th percentile of what is added", "ms", _p99(added_ms(streams)), target=ADDED_MS),
        row("  added where all ask in the same instant", "ms", added_ms(at_once)),
    ]


def added_ms(samples: Sequence[Sample]) -> list[float]:
    """heed's own share of each, in ms."""
    return [sample["seen_ms"] - sample["engine_ms"] for sample in samples]


async def _read(config: BenchConfig, user: str, wire: Wire, after_s: float, advance: Advance) -> list[FirstPiece]:
    """One person asks question after question."""
    await asyncio.sleep(after_s)
    questions = cases.probes(config.seed, config.questions, "http", user.rpartition("-")[2])
    found = [await wire.first_piece(_question(user, question.text)) for question in questions]
    advance("http")
    return found


def _question(user: str, text: str) -> dict[str, object]:
    return chat_body(user, [{"role": "user", "content": text}], "auto", "heed") | {"stream": True}


@asynccontextmanager
async def _wires(url: str, count: int) -> AsyncIterator[list[Wire]]:
    async with AsyncExitStack() as stack:
        wires = [await Wire.open(url) for _ in range(count)]
        for wire in wires:
            stack.push_async_callback(wire.close)
        yield wires


def _samples(pieces: Iterable[FirstPiece]) -> list[Sample]:
    return [{"seen_ms": piece.seen_s * 1e3, "engine_ms": piece.engine_s * 1e3} for piece in pieces]


def _p99(values: Sequence[float]) -> float:
    return statistics.quantiles(values, n=100, method="inclusive")[-1]
