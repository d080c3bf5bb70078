"""`heed bench [gpu] [key=value ...]`: measures how fast heed starts, learns and answers; prints a table, writes JSON.

Ratios are made within one run, from measurements that take turns. Exit codes: 0 when it measured; 1 with check=true
where a figure misses its target; 2 where it could not measure.
"""

import asyncio
import importlib
import secrets
import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

from rich.console import Console

from bench import start, table
from bench.config import PARTS, BenchConfig
from bench.figures import Row
from evals import command, provenance, server
from evals.client import Client
from evals.errors import MeasurementFailed
from evals.study import Advance

GPU = "gpu"  # before the arguments: a benchmark of its own (`bench.gpu`)
# need no running heed
BY_THEMSELVES = (
    "start",
    "intake",
    "parked",
    "dashboards",
    "crowd",
    "training",
    "claas",
    "memory",
    "population",
    "cluster",
)


def main(words: Sequence[str]) -> int:
    """Run the command line. Return the exit code."""
    if words and words[0] == GPU:
        from bench.gpu.run import main as measure_gpu

        return measure_gpu(words[1:])
    return command.execute("heed bench", BenchConfig, words, run_bench)


async def run_bench(config: BenchConfig, console: Console) -> int:
    """Measures, writes and prints; returns the exit code."""
    before = provenance.machine()
    with command.progress_bar() as progress:
        samples = await measure(config, command.Bar(progress, _units(config)))
    rows = rows_of(samples)
    path = Path(config.out) / "summary.json"
    model = samples.get("model") or config.measured_model
    made = provenance.made("heed bench", config, model, before)
    of_start = samples.get("start", {}).get(start.WEIGHTS)
    made["heed"] = samples.pop("heed", made["heed"])
    made[start.WEIGHTS] = made[start.WEIGHTS] or samples.get(start.WEIGHTS) or of_start
    command.write_json(path, made | {"rows": [row.to_json() for row in rows], "samples": samples})
    console.print(table.figures(rows))
    console.print(f"written to {path}")
    return 1 if config.check and any(row.is_met is False for row in rows) else 0


async def measure(config: BenchConfig, advance: Advance) -> dict[str, Any]:
    """Return the samples of every wanted part, by its name."""
    samples: dict[str, Any] = {}
    for part in (part for part in BY_THEMSELVES if part in config.only):
        samples[part] = await part_of(part).measure(config, advance)
    if set(config.only) <= set(BY_THEMSELVES):
        return samples
    folder = Path(tempfile.mkdtemp(prefix="heed-measured-"))
    try:
        await _measure_running(config, folder, samples, advance)
    finally:
        await asyncio.to_thread(shutil.rmtree, folder, ignore_errors=True)
    return samples


async def _measure_running(config: BenchConfig, folder: Path, samples: dict[str, Any], advance: Advance) -> None:
    """In place: add the samples of the parts that share a heed, whose data stand in a folder."""
    wanted = [part for part in PARTS if part in config.only and part not in BY_THEMSELVES]
    run_id = secrets.token_hex(3)
    async with (
        server.running(config.url, folder, config.settings) as url,
        Client(url, config.streams + config.watched) as client,
    ):
        samples["model"] = await client.model()
        samples[start.WEIGHTS] = await asyncio.to_thread(provenance.weights_of, samples["model"], folder)
        samples["heed"] = await asyncio.to_thread(provenance.heed_of, config, samples["model"], folder / "data")
        for part in wanted:
            samples[part] = await part_of(part).measure(config, client, run_id, advance)


def part_of(name: str) -> ModuleType:
    """Return the module that measures a part; one that is not wanted need not be installed.

    Raises MeasurementFailed if something it needs is missing.
    """
    try:
        return importlib.import_module(f"bench.{name}")
    except ModuleNotFoundError as error:
        raise MeasurementFailed(f"{name} needs {error.name}, which is not installed here: make setup-dev") from error


def rows_of(samples: dict[str, Any]) -> list[Row]:
    """Every row of the table."""
    rows: list[Row] = []
    for part in (p for p in PARTS if p in samples):
        rows += part_of(part).rows(samples[part])
    return rows


def _units(config: BenchConfig) -> int:
    return sum(part_of(part).units(config) for part in config.only)


if __name__ == "__main__":
    import sys

    raise SystemExit(main(sys.argv[1:]))
