"""A gateway and two engines on this machine: the way between them, both together, and the death of one.

Needs an empty PostgreSQL database. Every answer is greedy; the engines are those of `heed cluster up`.
"""

import asyncio
import contextlib
import itertools
import os
import secrets
import shutil
import signal
import statistics
import tempfile
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from bench.config import BenchConfig
from bench.figures import Row, p99, row
from engine.cluster import cluster
from engine.cluster.engines_here import EnginesHere
from engine.cluster.fleet import EngineHandle, Known
from engine.config import EngineConfig
from engine.engine import Engine
from engine.errors import EngineRestarting
from engine.pocket import PACKAGED
from engine.requests import GenerateRequest, GenerateResult
from evals import cases
from evals.errors import MeasurementFailed
from evals.study import Advance
from storage.conversations import completions
from storage.database import Database
from storage.fencing import Tokens
from storage.kinds import FeedbackStatus
from storage.learning import feedback
from storage.lease_keeper import DURATION_S
from storage.people import people
from storage.tables import Completion, Feedback

ENGINES = 2
PEOPLE = 8
WAY_QUESTIONS = 300
PAUSE_S = 0.2  # of a person between two questions
WATCHED_S = 40.0  # before and after an engine's death
MOST_WAY_MS = 10.0
MOST_OTHERS = 1.2
MOST_TIME_OF_TWO = 1 / 1.8  # of what one engine takes for the same answers
MARGIN_S = 3.0
CORRECTION = "no emoji please"
Samples = dict[str, list[float]]


def units(config: BenchConfig) -> int:
    """Return steps of the progress bar."""
    return config.rounds + 3


async def measure(config: BenchConfig, advance: Advance) -> Samples:
    """Return milliseconds of the way, seconds of one engine's and of both engines' rounds, and of a death."""
    samples = Samples(way_ms=[], one_s=[], both_s=[], gap_s=[], lesson_s=[], others=[])
    async with _running(config) as heed:
        await _way(config, heed, samples)
        advance("cluster")
        for number in range(config.rounds):
            await _round(config, heed, samples, number)
            advance("cluster")
        await _death(config, heed, samples)
        advance("cluster")
    return samples


def rows(samples: Samples) -> list[Row]:
    """Return the rows of the table."""
    ratios = [both / one for one, both in zip(samples["one_s"], samples["both_s"], strict=True)]
    return [
        Row("way to an engine and back, 99th percentile", "ms", p99(samples["way_ms"]), target=MOST_WAY_MS),
        Row("  median", "ms", statistics.median(samples["way_ms"])),
        row("the same answers by two engines / by one, time", "ratio", ratios, MOST_TIME_OF_TWO),
        Row(
            "an engine's death to its people's answers, longest",
            "s",
            max(samples["gap_s"]),
            target=DURATION_S + MARGIN_S,
        ),
        Row("  to the end of its unfinished lesson", "s", samples["lesson_s"][0]),
        Row("  other people's 99th percentile, after / before", "ratio", samples["others"][0], target=MOST_OTHERS),
    ]


@dataclass(frozen=True)
class MeasuredCluster:
    """A gateway's engine and its database, and people."""

    engine: EnginesHere
    database: Database
    people: list[str]

    def first(self, user_id: str) -> Known:
        """Return a person's engine."""
        return self.engine.fleet.ranked(user_id)[0]


@asynccontextmanager
async def _running(config: BenchConfig) -> AsyncIterator[MeasuredCluster]:
    """Provide one with two engines and people."""
    folder = Path(tempfile.mkdtemp(prefix="heed-measured-"))
    model = str(PACKAGED.get(config.measured_model, config.measured_model))
    settings = EngineConfig(model, folder, object_store=f"file://{folder}/objects")
    try:
        async with running(settings, config.database, num_engines=ENGINES) as heed:
            heed.people.extend(await _people(heed))
            yield heed
    finally:
        await asyncio.to_thread(shutil.rmtree, folder, ignore_errors=True)


async def _people(heed: MeasuredCluster) -> list[str]:
    """Return people who are as many at each engine, in turns."""
    by_engine: dict[str, list[str]] = {known.name: [] for known in heed.engine.fleet.all()}
    while min(map(len, by_engine.values())) < PEOPLE // len(by_engine):
        user_id = await new_person(heed.database)
        by_engine[heed.first(user_id).name].append(user_id)
    return [user_id for together in zip(*by_engine.values(), strict=False) for user_id in together]


@asynccontextmanager
async def running(settings: EngineConfig, database_url: str, num_engines: int) -> AsyncIterator[MeasuredCluster]:
    """Provide a cluster without people, once its gateway has seen every engine."""
    database = await asyncio.to_thread(Database.enter, database_url, "gateway", Tokens("gateway"))
    engine = cluster.engine_with_engines_here(settings, database, database_url=database_url, num_engines=num_engines)
    assert isinstance(engine, EnginesHere)
    try:
        await engine.start()
        while len(engine.fleet.all()) < num_engines:  # noqa: ASYNC110  the gateway looks for engines every second
            await asyncio.sleep(0.1)
        yield MeasuredCluster(engine, database, [])
    finally:
        await engine.stop()
        await database.close()


async def new_person(database: Database) -> str:
    """Return the id of someone new."""
    name = f"bench-cluster-{secrets.token_hex(3)}"
    return (await database.write(lambda s: people.resolve(s, "http", name, is_learning=True))).id


async def _way(config: BenchConfig, heed: MeasuredCluster, samples: Samples) -> None:
    """In place: what an answer takes beyond what its engine says that it took, one question at a time."""
    questions = _questions(config, "way")
    for number in range(WAY_QUESTIONS):
        user_id, question = heed.people[number % PEOPLE], next(questions)
        began_s = time.perf_counter()
        result = await ask(heed.engine, user_id, question)
        samples["way_ms"].append((time.perf_counter() - began_s - result.duration_s - result.waited_s) * 1e3)


async def _round(config: BenchConfig, heed: MeasuredCluster, samples: Samples, number: int) -> None:
    """In place: the same questions to one engine and to both, in turns."""
    ways = {"one_s": heed.engine.fleet.all()[:1], "both_s": heed.engine.fleet.all()}
    for name in list(ways)[:: 1 if number % 2 == 0 else -1]:
        engines, questions = itertools.cycle(ways[name]), _questions(config, f"round {number}")
        began_s = time.perf_counter()
        await asyncio.gather(
            *(_stream(config, next(engines), heed.people[n % PEOPLE], questions) for n in range(config.streams))
        )
        samples[name].append(time.perf_counter() - began_s)


async def _stream(config: BenchConfig, known: Known, user_id: str, questions: Iterator[str]) -> None:
    for _ in range(config.questions):
        async for _delta in known.handle.generate(_request(user_id, next(questions))):
            pass


async def _death(config: BenchConfig, heed: MeasuredCluster, samples: Samples) -> None:
    """In place: one engine is killed in the middle of a lesson, while everybody asks question after question."""
    lost = heed.first(heed.people[0])
    theirs = {user_id for user_id in heed.people if heed.first(user_id) is lost}
    taught = await corrected(heed, heed.people[0], next(_questions(config, "corrected")))
    answers: dict[str, list[_Answer]] = {user_id: [] for user_id in heed.people}
    asking = [asyncio.create_task(_ask(config, heed, user_id, answers[user_id])) for user_id in heed.people]
    await asyncio.sleep(WATCHED_S)
    learning = asyncio.create_task(heed.engine.learn(taught))
    await _begun(heed, taught)
    died_s = time.perf_counter()
    os.kill(lost.identity.pid, signal.SIGKILL)
    outcome = await learning
    if outcome.status != "learned":
        raise MeasurementFailed(f"the lesson was not learned: {outcome.status} {outcome.reason}")
    samples["lesson_s"].append(time.perf_counter() - died_s)
    await asyncio.sleep(max(0.0, WATCHED_S - (time.perf_counter() - died_s)))
    for task in asking:
        task.cancel()
    await asyncio.gather(*asking, return_exceptions=True)
    samples["gap_s"] += [min(a.end_s for a in answers[u] if a.end_s > died_s) - died_s for u in theirs]
    others = [answer for user_id in set(heed.people) - theirs for answer in answers[user_id]]
    before, after = ([a.duration_s for a in others if (a.end_s > died_s) is late] for late in (False, True))
    samples["others"].append(p99(after) / p99(before))


@dataclass(frozen=True)
class _Answer:
    end_s: float
    duration_s: float


async def _begun(heed: MeasuredCluster, feedback_id: str) -> None:
    """Return once a lesson is being learned."""
    while (await heed.database.read(lambda s: feedback.get(s, feedback_id))).status == FeedbackStatus.PENDING:  # noqa: ASYNC110
        await asyncio.sleep(0.01)


async def _ask(config: BenchConfig, heed: MeasuredCluster, user_id: str, answers: list[_Answer]) -> None:
    questions = _questions(config, user_id)
    while True:
        began_s = time.perf_counter()
        with contextlib.suppress(EngineRestarting):  # the answer that was being written when its engine died
            await ask(heed.engine, user_id, next(questions))
            answers.append(_Answer(time.perf_counter(), time.perf_counter() - began_s))
        await asyncio.sleep(PAUSE_S)


async def corrected(heed: MeasuredCluster, user_id: str, question: str) -> str:
    """Store an answer and a correction of it, as a gateway does. Return the feedback's id."""
    result = await ask(heed.engine, user_id, question)
    answer = Completion(
        user_id=user_id, messages=result.messages, notes=result.notes, prompt_token_ids=result.prompt_token_ids,
        completion_token_ids=result.completion_token_ids, logprobs=result.logprobs, text=result.text,
        adapter_version=result.adapter_version, sampling=result.sampling, finish_reason=result.finish_reason,
    )  # fmt: skip
    stored = await heed.database.write(lambda s: completions.add(s, answer))
    said = Feedback(user_id=user_id, completion_id=stored.id, kind="correction", text=CORRECTION)
    return (await heed.database.write(lambda s: feedback.add(s, said)))[0].id


async def ask(engine: Engine | EngineHandle, user_id: str, question: str) -> GenerateResult:
    """Return a whole answer. Raises EngineRestarting."""
    async for delta in engine.generate(_request(user_id, question)):
        if delta.result is not None:
            return delta.result
    raise MeasurementFailed("an answer ended without a result")


def _questions(config: BenchConfig, label: str) -> Iterator[str]:
    return itertools.cycle(
        question.text for question in cases.corrected(config.seed, config.questions, "cluster", label)
    )


def _request(user_id: str, text: str) -> GenerateRequest:
    return GenerateRequest(user_id, [{"role": "user", "content": text}])
