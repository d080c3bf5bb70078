"""The cost of an update for another person: the gaps in another person's streams while it runs.

The other person keeps several streams open the whole time. Every update is followed by a window of the same length in
which nothing is learned, so that both see the same machine. What follows an update (probes, rollouts for the next) is
watched too, on a row of its own.
"""

import asyncio
import itertools
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from statistics import fmean

from bench.config import BenchConfig
from bench.figures import Row, p95, row
from bench.people import person, wish_in_turn
from bench.windows import TimeWindow, gaps_s
from evals import cases
from evals.arms import TaughtPerson
from evals.client import Client
from evals.study import Advance

TARGET_MS = 250.0
TARGET_RATIO = 3.0
SMOOTH_MS, SMOOTH_RATIO = 150.0, 2.0  # of all gaps, not only the longest
PAUSE_S = 0.2  # between one window and the next
LESSONS_PER_PERSON = 4
UPDATE, AFTER, QUIET = "during an update", "after an update", "without an update"
ANY = "all gaps "  # before UPDATE and QUIET: not only the longest of each window
Samples = dict[str, list[float]]


@dataclass(frozen=True)
class Watched:
    """One update's three windows."""

    update: TimeWindow
    after: TimeWindow
    quiet: TimeWindow


def units(config: BenchConfig) -> int:
    """Return steps of the progress bar."""
    return config.updates


async def measure(config: BenchConfig, client: Client, run_id: str, advance: Advance) -> Samples:
    """Return the longest gap of every window, and all gaps of updates and quiet windows, in ms."""
    windows: list[Watched] = []
    async with _streaming(config, client, f"bench-{run_id}-reader") as answers:
        for number in range(config.updates):
            learner = person(client, f"bench-{run_id}-gaps-{number // LESSONS_PER_PERSON}")
            windows.append(await _watch(config, client, learner, number))
            advance("gaps")
    return gaps_ms(answers, windows)


def gaps_ms(answers: Sequence[Sequence[float]], windows: Sequence[Watched]) -> Samples:
    """Return the longest gap per window and kind, in ms; a window in which nothing streamed gives none."""
    kinds = {
        UPDATE: [w.update for w in windows],
        AFTER: [w.after for w in windows],
        QUIET: [w.quiet for w in windows],
    }
    found = {kind: [gaps_s(answers, window) for window in them] for kind, them in kinds.items()}
    longest = {kind: [1e3 * max(gaps) for gaps in windows if gaps] for kind, windows in found.items()}
    every = {ANY + kind: [1e3 * gap for gaps in found[kind] for gap in gaps] for kind in (UPDATE, QUIET)}
    return longest | every


async def _watch(config: BenchConfig, client: Client, learner: TaughtPerson, number: int) -> Watched:
    wish = wish_in_turn(config.seed, "gaps", number)
    answer = await learner.say(cases.corrected(config.seed, 1, "gaps", number)[0])
    await asyncio.sleep(PAUSE_S)
    sent_s = time.perf_counter()
    await client.correct(learner.name, answer.completion_id, wish.text)
    learned_s = time.perf_counter()
    await learner.settle()
    settled_s = time.perf_counter()
    await asyncio.sleep(PAUSE_S)
    quiet_s = time.perf_counter()
    await asyncio.sleep(learned_s - sent_s)
    return Watched(
        TimeWindow(sent_s, learned_s), TimeWindow(learned_s, settled_s), TimeWindow(quiet_s, time.perf_counter())
    )


@asynccontextmanager
async def _streaming(config: BenchConfig, client: Client, user: str) -> AsyncIterator[list[list[float]]]:
    """Streams of one person, question after question, as long as the block runs; yields the list they go to.

    The answers that stream when the block ends are read to their end: the list is whole only after it.
    """
    answers: list[list[float]] = []
    is_over = asyncio.Event()
    async with asyncio.TaskGroup() as readers:
        for number in range(config.watched):
            readers.create_task(_read(config, client, user, number, answers, is_over), name=f"reader {number}")
        try:
            yield answers
        finally:
            is_over.set()


async def _read(
    config: BenchConfig, client: Client, user: str, number: int, answers: list[list[float]], is_over: asyncio.Event
) -> None:
    for question in itertools.cycle(cases.probes(config.seed, 40, "gaps", number)):
        if is_over.is_set():
            return
        answers.append([arrived_s async for arrived_s in client.stream(user, question.text)])


def rows(samples: Samples) -> list[Row]:
    """Return the rows of the table."""
    if not (samples[UPDATE] and samples[QUIET]):
        return []
    quiet = p95(samples[QUIET])
    limits = {UPDATE: TARGET_MS, AFTER: None, QUIET: None}
    named = [
        row(f"longest gap in another's stream, {kind}", "ms", samples[kind], limits[kind], "p95")
        for kind in (UPDATE, AFTER, QUIET)
        if samples[kind]
    ]
    longest = Row("  p95 during / without", "ratio", p95(samples[UPDATE]) / quiet, None, TARGET_RATIO)
    return [*named, longest, *_of_all(samples[ANY + UPDATE], samples[ANY + QUIET])]


def _of_all(during: Sequence[float], without: Sequence[float]) -> list[Row]:
    """Return rows of all gaps. Their mean is the time that a token takes: its ratio is that of an answer's time."""
    if not (during and without):
        return []
    return [
        row("gap in another's stream, during an update", "ms", during, SMOOTH_MS, "p95"),
        row("gap in another's stream, without an update", "ms", without),
        Row("  p95 during / without", "ratio", p95(during) / p95(without), None, SMOOTH_RATIO),
        Row("  time of an answer, during / without", "ratio", fmean(during) / fmean(without), None, SMOOTH_RATIO),
    ]
