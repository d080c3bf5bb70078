"""A heed that serves the model: its start, answers with several numbers of adapters, gaps beside lessons, memory.

Every number of adapters is timed in every round, in turns, with the same streams: of eight people's adapters each
answers an eighth of them, and without any the base model answers all. Gates are open, since random weights learn
nothing that a gate lets through, and each person has to have an adapter.
"""

import asyncio
import shutil
import statistics
import subprocess
import time
from collections.abc import Sequence
from typing import Any

from bench import gaps
from bench.config import BenchConfig
from bench.figures import Row, row
from bench.gpu.config import GpuBenchConfig
from bench.people import person, wish_in_turn
from evals import cases
from evals.client import Client
from evals.errors import StartFailed
from evals.rules import OPEN_GATES
from evals.server import HeedServer
from evals.study import BASE_MODEL, Advance

PART = "serving"
WATCHED_UPDATES = 3
MOST_START_S = 180.0
Samples = dict[str, Any]


def units(config: GpuBenchConfig) -> int:
    """Return steps of the progress bar."""
    return 1 + max(config.adapters) + config.rounds


def settings_of(config: GpuBenchConfig, folder: str) -> dict[str, str]:
    """Return the variables of the heed that is measured."""
    gates = {f"HEED_GATE_{name.upper()}": str(value) for name, value in OPEN_GATES.items()}
    return {
        **gates,
        "HEED_MODEL": folder,
        "HEED_LEARN_MIN_DIVERGENCE": "0",
        "HEED_HOST_MAX_NUM_SEQS": str(config.streams),
        "HEED_HOST_MAX_LORAS_GPU": str(max(1, *config.adapters)),
        "HEED_HTTP_MAX_STREAMS": str(config.streams),
        "HEED_HTTP_MAX_STREAMS_EACH": str(config.streams),
    }


async def measure(config: GpuBenchConfig, folder: str, advance: Advance) -> Samples:
    """Seconds of the start, tokens per second by number of adapters, gaps, and memory at each stage."""
    server = HeedServer(settings_of(config, folder))
    try:
        samples: Samples = {"start_s": [await server.start()], "memory_mib": {"started": await used_mib()}}
        async with Client(server.url, config.streams, config.tokens, "always") as client:
            advance(PART)
            samples["tokens_per_s"] = await decoding(config, client, advance)
            samples["memory_mib"]["decoded"] = await used_mib()
            watched = BenchConfig(updates=WATCHED_UPDATES, seed=config.seed)
            samples["gaps"] = await gaps.measure(watched, client, "gpu", lambda _: None)
            samples["memory_mib"]["learned"] = await used_mib()
        return samples
    finally:
        await server.stop()


async def decoding(config: GpuBenchConfig, client: Client, advance: Advance) -> dict[str, list[float]]:
    """Tokens per second of every round, by the number of adapters."""
    users = [f"bench-gpu-{number}" for number in range(max(config.adapters))]
    for number, user in enumerate(users):
        about = cases.corrected(config.seed, 1, "gpu", number)[0]
        lesson = await person(client, user).correct(about, wish_in_turn(config.seed, "gpu", number).text)
        if lesson.status != "learned":
            raise StartFailed(f"lesson {number + 1} made no adapter ({lesson.status})")
        advance(PART)
    found: dict[str, list[float]] = {str(count): [] for count in config.adapters}
    for number in range(config.rounds):
        for count in config.adapters[:: 1 if number % 2 == 0 else -1]:
            found[str(count)].append(await _round(config, client, users[:count], number))
        advance(PART)
    return found


async def _round(config: GpuBenchConfig, client: Client, users: Sequence[str], number: int) -> float:
    asked = cases.probes(config.seed, config.streams, "gpu", number)
    named = [users[place % len(users)] for place in range(len(asked))] if users else ["bench-gpu"] * len(asked)
    model = "heed" if users else BASE_MODEL
    started_s = time.perf_counter()
    pairs = zip(named, asked, strict=True)
    answers = await asyncio.gather(*(client.ask(user, [q.text], notes="off", model=model) for user, q in pairs))
    return sum(answer.completion_tokens for (answer,) in answers) / (time.perf_counter() - started_s)


async def used_mib() -> int | None:
    """Return the memory in use on the first GPU, by its driver; None where there is none."""
    program = shutil.which("nvidia-smi")
    if program is None:
        return None
    asked = [program, "--query-gpu=memory.used", "--format=csv,noheader,nounits"]
    told = await asyncio.to_thread(subprocess.run, asked, capture_output=True, text=True, check=True)
    return int(told.stdout.split()[0])


def rows(samples: Samples) -> list[Row]:
    """Return the rows of the table."""
    speeds = {int(count): found for count, found in samples["tokens_per_s"].items()}
    base = speeds.get(0)
    found = [row("start to ready", "s", samples["start_s"], MOST_START_S)]
    for count, speed in sorted(speeds.items()):
        found.append(row(f"decoding, {count} adapters" if count else "decoding, base model", "tokens/s", speed))
        if base and count:
            found.append(Row("  by the base model's", "ratio", statistics.median(speed) / statistics.median(base)))
    found += gaps.rows(samples["gaps"])
    memory = [(stage, used) for stage, used in samples["memory_mib"].items() if used is not None]
    return found + [Row(f"memory in use, {stage}", "GB", used * 2**20 / 1e9) for stage, used in memory]
