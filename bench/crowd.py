"""The effect on people of clients that hold connections and say nothing, or next to nothing.

A few people ask question after question, before, during and after a crowd is connected: clients that have sent half a
request's head, and slow ones that send a byte of a head or of a body every second. Those that are let go come back.
"""

import asyncio
import contextlib
import itertools
import statistics
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from functools import partial
from urllib.parse import urlsplit

from bench.config import BenchConfig
from bench.figures import Row
from bench.wire import Wire
from bot.housekeeping import periodic
from bot.housekeeping.periodic import PeriodicTask
from bot.http.port import raise_file_limit
from evals import cases
from evals.client import chat_body
from evals.server import HeedServer
from evals.study import Advance

PEOPLE = 4
RATIO = 1.2
LOG_MB = 1.0
EACH_S = 1.0  # between two bytes of a slow client, and before a client that was let go connects again
HEAD = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nX-Long: "
BODY = b"POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100000\r\n\r\n"
Samples = dict[str, list[float]]


def units(_config: BenchConfig) -> int:
    """Return steps of the progress bar."""
    return 3


async def measure(config: BenchConfig, advance: Advance) -> Samples:
    """Milliseconds to each first event without and with the crowd, and the megabytes that its log grew by."""
    raise_file_limit()
    server = HeedServer(config.settings)
    samples = Samples(quiet_ms=[], crowded_ms=[], log_mb=[])
    try:
        await server.start()
        log_bytes = server.log_bytes()
        samples["quiet_ms"] += await _asking(config, server.url, "before", config.crowd_s / 2)
        advance("crowd")
        async with _crowd(config, server.url):
            samples["crowded_ms"] += await _asking(config, server.url, "during", config.crowd_s)
        advance("crowd")
        samples["quiet_ms"] += await _asking(config, server.url, "after", config.crowd_s / 2)
        samples["log_mb"].append((server.log_bytes() - log_bytes) / 1e6)
        advance("crowd")
    finally:
        await server.stop()
    return samples


def rows(samples: Samples) -> list[Row]:
    """Return the rows of the table."""
    quiet, crowded = _p99(samples["quiet_ms"]), _p99(samples["crowded_ms"])
    return [
        Row("first event, 99th percentile, nobody else", "ms", quiet),
        Row("  with idle and slow clients", "ms", crowded),
        Row("  ratio", "ratio", crowded / quiet, target=RATIO),
        Row("  growth of the log", "MB", samples["log_mb"][0], target=LOG_MB),
    ]


async def _asking(config: BenchConfig, url: str, phase: str, seconds: float) -> list[float]:
    """Let a few people ask one question after the other for a time; milliseconds to each first event."""
    found = await asyncio.gather(*(_one(config, url, f"bench-crowd-{phase}-{n}", seconds) for n in range(PEOPLE)))
    return [value for values in found for value in values]


async def _one(config: BenchConfig, url: str, user: str, seconds: float) -> list[float]:
    wire, found = await Wire.open(url), list[float]()
    questions = itertools.cycle(cases.probes(config.seed, config.questions, "crowd", user))
    end_s = time.perf_counter() + seconds
    while time.perf_counter() < end_s:
        body = chat_body(user, [{"role": "user", "content": next(questions).text}], "auto", "heed") | {"stream": True}
        found.append((await wire.first_piece(body)).seen_s * 1e3)
    await wire.close()
    return found


@asynccontextmanager
async def _crowd(config: BenchConfig, url: str) -> AsyncIterator[None]:
    """Keep the crowd connected for the length of the block."""
    slow = itertools.islice(itertools.cycle((HEAD, BODY)), config.slow_clients)
    calls = [partial(_connect, url, HEAD, is_slow=False) for _ in range(config.idle_clients)]
    calls += [partial(_connect, url, begun, is_slow=True) for begun in slow]
    async with periodic.running(PeriodicTask("bench-crowd", call, EACH_S) for call in calls):
        yield


async def _connect(url: str, begun: bytes, *, is_slow: bool) -> None:
    """Connect and hold the connection for as long as heed lets it."""
    address = urlsplit(url)
    with contextlib.suppress(OSError):
        reader, writer = await asyncio.open_connection(address.hostname, address.port)
        try:
            writer.write(begun)
            await (_dribble(reader, writer) if is_slow else reader.read())
        finally:
            writer.close()


async def _dribble(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while not reader.at_eof() and not writer.is_closing():
        writer.write(b"a")
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(EACH_S):
                await reader.read(1)


def _p99(values: Sequence[float]) -> float:
    return statistics.quantiles(values, n=100, method="inclusive")[-1]
