"""`heed bench gpu [key=value ...]`: measures, prints a table, writes gpu.json.

Exit codes: 0 when it measured; 2 where it could not: no GPU, no room, no model.
"""

import asyncio
import importlib.util
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from rich.console import Console

from bench import table
from bench.figures import Row
from bench.gpu import lesson, serving
from bench.gpu.config import GpuBenchConfig
from bench.gpu.shape import qwen3_8b, save_random
from evals import command, provenance
from evals.errors import StartFailed

RANDOM = "Qwen3-8B's shape, random weights"
NO_VLLM = "vLLM is not installed here: a lesson is measured, answers are not."


def main(words: Sequence[str]) -> int:
    """Run the command line. Return the exit code."""
    return command.execute("heed bench gpu", GpuBenchConfig, words, run_gpu_bench)


async def run_gpu_bench(config: GpuBenchConfig, console: Console) -> int:
    """Measures, writes and prints; returns the exit code."""
    require_device(config.device)
    before = provenance.machine()
    parts = wanted(config, console)
    with command.progress_bar() as progress, tempfile.TemporaryDirectory(prefix="heed-gpu-") as temporary:
        bar = command.Bar(progress, units(config, parts))
        samples: dict[str, Any] = {}
        if "lesson" in parts:
            samples["lesson"] = await asyncio.to_thread(lesson.measure, config, bar)
            torch.cuda.empty_cache()
        if "serving" in parts:
            folder = await asyncio.to_thread(prepared, config, Path(temporary))
            samples["serving"] = await serving.measure(config, str(folder), bar)
    rows = rows_of(samples)
    made = provenance.made("heed bench gpu", config, config.model or RANDOM, before)
    path = Path(config.out) / "gpu.json"
    report = {"device": device_name(config.device), "rows": [row.to_json() for row in rows], "samples": samples}
    command.write_json(path, made | report)
    console.print(table.figures(rows))
    console.print(f"{device_name(config.device)}; written to {path}")
    return 0


def require_device(device: str) -> None:
    """Raise StartFailed if there is no GPU to measure."""
    if device == "cuda" and not torch.cuda.is_available():
        raise StartFailed("no NVIDIA GPU is seen by PyTorch here; device=cpu tries the command out on a small model")


def wanted(config: GpuBenchConfig, console: Console) -> list[str]:
    """Return the parts that can be measured here; say which cannot."""
    if "serving" not in config.only or importlib.util.find_spec("vllm"):
        return list(config.only)
    console.print(NO_VLLM)
    return [part for part in config.only if part != "serving"]


def units(config: GpuBenchConfig, parts: Sequence[str]) -> int:
    """Return steps of the progress bar."""
    lessons = config.lessons + 1 if "lesson" in parts else 0
    return lessons + (serving.units(config) if "serving" in parts else 0)


def prepared(config: GpuBenchConfig, temporary: Path) -> Path:
    """Return the folder of the model that is served; random weights are written first. Blocking."""
    if config.model:
        return Path(config.model)
    return save_random(qwen3_8b(), temporary / "model", torch.device(config.device))


def rows_of(samples: dict[str, Any]) -> list[Row]:
    """Every row of the table."""
    found = lesson.rows(samples["lesson"]) if "lesson" in samples else []
    return [*found, *(serving.rows(samples["serving"]) if "serving" in samples else [])]


def device_name(device: str) -> str:
    """Return what was measured."""
    return torch.cuda.get_device_name() if device == "cuda" else "CPU"
