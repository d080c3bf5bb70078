"""From starting the process to the first answer, with an empty data directory each time, and once more with its data.

A model that is named is fetched and converted by the first of the two starts: what it takes longer is that.
"""

import asyncio
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from bench.config import BenchConfig
from bench.figures import Row, row
from evals import provenance
from evals.client import Client
from evals.server import HeedServer
from evals.study import Advance

WEIGHTS = "weights_sha256"
TARGET_S = 40.0
PREPARED_S = 180.0  # a named model's package and conversion
STARTED_S = 45.0  # and its start
Samples = dict[str, Any]  # lists of seconds, and the weights' hash


def units(config: BenchConfig) -> int:
    """Return steps of the progress bar."""
    return config.starts


async def measure(config: BenchConfig, advance: Advance) -> Samples:
    """Seconds until /readyz says ready, and until one answer had come; for a named model twice in one directory."""
    samples = Samples(ready_s=[], answered_s=[]) | (Samples(again_s=[]) if config.model else {})
    for _ in range(config.starts):
        with tempfile.TemporaryDirectory(prefix="heed-started-") as folder:
            ready_s, answered_s = await _start_once(config.settings, Path(folder))
            samples["ready_s"].append(ready_s)
            samples["answered_s"].append(answered_s)
            if config.model:
                samples["again_s"].append((await _start_once(config.settings, Path(folder)))[0])
                samples[WEIGHTS] = await asyncio.to_thread(provenance.weights_of, config.model, Path(folder))
        advance("start")
    return samples


async def _start_once(settings: Mapping[str, str], folder: Path) -> tuple[float, float]:
    server = HeedServer(settings, folder)
    started_s = time.perf_counter()
    try:
        ready_s = await server.start()
        async with Client(server.url) as client:
            await client.ask("bench-start", ["hello"])
        return ready_s, time.perf_counter() - started_s
    finally:
        await server.stop()


def rows(samples: Samples) -> list[Row]:
    """Return the rows of the table."""
    if "again_s" in samples:
        prepared = [max(0.0, r - a) for r, a in zip(samples["ready_s"], samples["again_s"], strict=True)]
        return [
            row("package and conversion", "s", prepared, PREPARED_S),
            row("start to ready", "s", samples["again_s"], STARTED_S),
        ]
    return [
        row("start to ready", "s", samples["ready_s"]),
        row("start to first answer", "s", samples["answered_s"], TARGET_S),
    ]
