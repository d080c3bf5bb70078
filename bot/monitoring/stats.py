"""Statistics of a running heed for the operator, collected and put into words.

Counts are of today, of seven days and of all time; days are UTC. Never a text, and of people only how many.
"""

import asyncio
import math
import shutil
import time
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Generic, TypeVar

import psutil

from storage.database import Database, Session
from storage.learning import drift_audits
from storage.reports import statistics
from storage.reports.statistics import Adapters, Queue

T = TypeVar("T")

DAYS_IN_CHART = 14
NEWEST = 10_000  # answers and updates behind a percentile
GPU_QUERY = ("--query-gpu=memory.used,memory.total", "--format=csv,noheader,nounits")
GPU_TIMEOUT_S = 5.0
GROUPS = ("users", "messages", "feedback", "updates")


@dataclass(frozen=True)
class Windows(Generic[T]):
    """The same figure over three spans of time."""

    today: T
    week: T
    all: T


@dataclass(frozen=True)
class Machine:
    """Resources that heed uses: its own process and the ones it started."""

    uptime_s: float
    memory_bytes: int
    gpu_mib: tuple[int, int] | None  # used, and there in all


@dataclass(frozen=True)
class Figures:
    """Everything /stats shows."""

    users: Windows[Mapping[str, int]]
    messages: Windows[Mapping[str, int]]
    feedback: Windows[Mapping[str, int]]  # "correction on telegram"
    tokens: Windows[tuple[int, int]]
    updates: Windows[Mapping[str, int]]
    answer_times_s: list[tuple[float, float]]  # of seven days: first token, whole answer
    update_times_ms: list[float]
    queue: Queue
    adapters: Adapters
    drift: Mapping[str, int]  # people by what their last audit found
    machine: Machine
    at_s: float


async def collect(database: Database, now_s: float) -> Figures:
    """Look everything up."""
    today_s, week_s = day_start_s(now_s), day_start_s(now_s, -6)

    async def windows(figure: Callable[[Session, float], T]) -> Windows[T]:
        return Windows(
            await database.read(lambda s: figure(s, today_s)),
            await database.read(lambda s: figure(s, week_s)),
            await database.read(lambda s: figure(s, 0)),
        )

    users = await windows(statistics.users)
    known = await database.read(statistics.known_users)
    return Figures(
        users=Windows(users.today, users.week, known),
        messages=await windows(statistics.messages),
        feedback=await windows(_feedback),
        tokens=await windows(statistics.tokens),
        updates=await windows(statistics.updates),
        answer_times_s=await database.read(lambda s: statistics.answer_times(s, week_s, NEWEST)),
        update_times_ms=await database.read(lambda s: statistics.update_times_ms(s, week_s, NEWEST)),
        queue=await database.read(statistics.queue),
        adapters=await database.read(statistics.adapters),
        drift=await database.read(drift_audits.levels),
        machine=await machine(),
        at_s=now_s,
    )


def words(figures: Figures) -> str:
    """Return the figures as lines that read well in any font."""
    lines = ["today / 7 days / all (days in UTC)"]
    for name in GROUPS:
        lines += _group(name, getattr(figures, name))
    lines.append(f"tokens in: {_spans(figures.tokens, lambda in_and_out: in_and_out[0])}")
    lines += [f"tokens out: {_spans(figures.tokens, lambda in_and_out: in_and_out[1])}", ""]
    lines += _times(figures)
    return "\n".join([*lines, *_learned(figures), _machine(figures.machine)])


def day_start_s(now_s: float, days: int = 0) -> float:
    """When a day began, `days` after the one of `now_s`."""
    day = datetime.fromtimestamp(now_s, UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    return (day + timedelta(days=days)).timestamp()


def percentile(values: list[float], share: float) -> float:
    """Return the smallest value that at least `share` of the values do not exceed (nearest rank); 0 of none."""
    return sorted(values)[max(0, math.ceil(share * len(values)) - 1)] if values else 0.0


async def machine() -> Machine:
    """Return what heed uses now."""
    uptime_s, memory_bytes = await asyncio.to_thread(_process)
    return Machine(uptime_s, memory_bytes, await gpu_mib())


async def gpu_mib(tool: str | None = None) -> tuple[int, int] | None:
    """Return used and whole memory of the first GPU in MiB, or None if there is none that says."""
    tool = tool or shutil.which("nvidia-smi")
    if tool is None:
        return None
    try:
        process = await asyncio.create_subprocess_exec(tool, *GPU_QUERY, stdout=PIPE, stderr=DEVNULL)
        used, whole = (await _output(process)).splitlines()[0].split(",")
        return int(used), int(whole)
    except (OSError, TimeoutError, ValueError, IndexError):
        return None


async def _output(process: Process) -> str:
    try:
        async with asyncio.timeout(GPU_TIMEOUT_S):
            output, _ = await process.communicate()
    finally:
        with suppress(ProcessLookupError):
            process.kill()
    return output.decode()


def _process() -> tuple[float, int]:
    """Blocking: looks at every process that heed has started."""
    own = psutil.Process()
    memory_bytes = 0
    for process in (own, *own.children(recursive=True)):
        with suppress(psutil.Error):  # it has ended since
            memory_bytes += process.memory_info().rss
    return time.time() - own.create_time(), memory_bytes


def _feedback(s: Session, since_s: float) -> dict[str, int]:
    return {f"{kind} on {platform}": number for (kind, platform), number in statistics.feedback(s, since_s).items()}


def _group(name: str, counts: Windows[Mapping[str, int]]) -> list[str]:
    known = sorted({*counts.today, *counts.week, *counts.all})
    lines = [f"{name}: {_spans(counts, lambda found: sum(found.values()))}"]
    for key in known:
        of_key = Windows(*(span.get(key, 0) for span in (counts.today, counts.week, counts.all)))
        lines.append(f"  {key}: {_spans(of_key, int)}")
    return lines


def _spans(counts: Windows[T], figure: Callable[[T], int]) -> str:
    return " / ".join(f"{figure(span):,}" for span in (counts.today, counts.week, counts.all))


def _times(figures: Figures) -> list[str]:
    lines = ["of 7 days:"]
    for place, name in enumerate(("first token", "whole answer")):
        values = [times[place] for times in figures.answer_times_s]
        lines.append(f"{name}: p50 {seconds(percentile(values, 0.5))}, p95 {seconds(percentile(values, 0.95))}")
    typical_ms = percentile(figures.update_times_ms, 0.5)
    return [*lines, f"update: median {seconds(typical_ms / 1000)}", ""]


def _learned(figures: Figures) -> list[str]:
    queue, adapters = figures.queue, figures.adapters
    versions = f"{adapters.num_versions} version{'s' * (adapters.num_versions != 1)}"
    undone = f"{adapters.num_taken_back} lesson{'s' * (adapters.num_taken_back != 1)} undone"
    oldest = f", the oldest for {span(figures.at_s - queue.oldest_at_s)}" if queue.oldest_at_s is not None else ""
    return [
        f"queue: {queue.length} waiting{oldest}",
        f"adapters: {adapters.num_people}, {size(adapters.size_bytes)}, {versions}",
        f"rollbacks: {undone}",
        f"drift: {drifted(figures.drift)}",
        "",
    ]


def drifted(levels: Mapping[str, int]) -> str:
    """Return what the last audits found: "2 people audited, 1 critical"."""
    found = [f"{levels[level]} {level}" for level in ("warn", "critical") if levels.get(level)]
    number = sum(levels.values())
    return ", ".join([f"{number} {'person' if number == 1 else 'people'} audited", *found])


def _machine(machine: Machine) -> str:
    gpu = "none"
    if machine.gpu_mib is not None:
        used, whole = (size(mib * 1024**2) for mib in machine.gpu_mib)
        gpu = f"{used} of {whole}"
    return f"up: {span(machine.uptime_s)}\nmemory: {size(machine.memory_bytes)}\nGPU memory: {gpu}"


def seconds(value_s: float) -> str:
    """Return a short time: "120 ms", "1.2 s"."""
    return f"{value_s * 1000:.0f} ms" if value_s < 1 else f"{value_s:.1f} s"


def span(value_s: float) -> str:
    """Return a long time in its two largest units: "3 d 4 h", "5 min 0 s"."""
    left = max(0, int(value_s))
    parts: list[str] = []
    for name, unit_s in (("d", 86_400), ("h", 3600), ("min", 60), ("s", 1)):
        number, left = divmod(left, unit_s)
        if number or parts or unit_s == 1:
            parts.append(f"{number} {name}")
    return " ".join(parts[:2])


def size(size_bytes: float) -> str:
    """Return a size: "512 B", "1.2 MB"."""
    for unit in ("B", "kB", "MB", "GB"):
        if size_bytes < 1000 or unit == "GB":
            break
        size_bytes /= 1000
    return f"{size_bytes:.0f} {unit}" if unit == "B" else f"{size_bytes:.1f} {unit}"
