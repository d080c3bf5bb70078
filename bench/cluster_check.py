"""`python -m bench.cluster_check database=postgresql://... [key=value ...]`: a cluster beside its own model.

People with and without an adapter ask one to four engines of this machine, which begin with empty disks, at random
moments; after half the time an engine is killed, and comes back. `bench.cluster_model` replays the same messages, with
the times that one of these engines took for others just before: the more of them share this machine's processor, the
longer each takes, and that is no part of the model. Needs an empty PostgreSQL database. Prints a table and writes
cluster-check.json.
Exit codes: 0 when it ran, 1 where check=true and the two differ by more than 15 %; 2 where it could not measure.
"""

import asyncio
import itertools
import os
import random
import signal
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import AbstractAsyncContextManager, suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from bench import cluster
from bench.cluster import MeasuredCluster
from bench.cluster_model import Assumptions, ReplayedModel, SimulatedOutcome, Trace
from engine.cluster.fleet import EngineHandle
from engine.config import EngineConfig
from engine.engine import Engine
from engine.errors import EngineRestarting
from engine.pocket import PACKAGED
from evals import cases, command, provenance
from evals.arguments import described
from evals.config import require_range
from evals.errors import ArgumentError, MeasurementFailed

DIES = "engine-1"
SLOTS = 256  # adapters in an engine at once: more than there are
FULL = 8  # answers at once, for what an answer takes beside others
TIMES = 5  # answers of each person, for what one takes
MOST_OFF = 0.15
COLUMNS = {
    "engines": "engines",
    "answers": "answers",
    "cold_loads": "adapters read, real and model",
    "fetches": "of these from the store",
    "median_s": "answer, median s",
    "restart_s": "back after s",
    "off": "most off %",
}
Pair = tuple[float, float]  # real, and by the model
Figures = dict[str, Any]
Asked = Engine | EngineHandle


@dataclass(frozen=True)
class CheckConfig:
    """The arguments of the comparison."""

    database: str = described("", "an empty PostgreSQL database, postgresql://...")
    engines: str = described("1,2,3,4", "numbers of engines")
    people: int = described(40, "people, of whom every other one has an adapter")
    seconds: float = described(150.0, "for which they ask; after half of it an engine is killed")
    a_second: float = described(0.8, "messages, of all people together")
    seed: int = described(0, "of people, moments and questions")
    out: str = described("bench/results", "folder for cluster-check.json")
    check: bool = described(False, "exit with 1 where the model is more than 15 % off")

    def __post_init__(self) -> None:
        """Raise ArgumentError on a value nothing can be compared with."""
        require_range("people", self.people, 2 * FULL, 1000)
        if not self.database:
            raise ArgumentError("database wants postgresql://..., an empty one")
        if not 10 <= self.seconds <= 3600:
            raise ArgumentError(f"seconds wants a number from 10 to 3600, not {self.seconds}")
        if not 0 < self.a_second <= 10:
            raise ArgumentError(f"a_second wants a number up to 10, not {self.a_second}")
        if not all(word.isdecimal() and 1 <= int(word) <= 16 for word in self.engines.split(",")):
            raise ArgumentError(f"engines wants numbers from 1 to 16, not {self.engines}")

    @property
    def counts(self) -> list[int]:
        """The numbers of engines, each once, in their order."""
        return sorted({int(word) for word in self.engines.split(",")})


@dataclass(frozen=True)
class RealOutcome:
    """The deeds of a real cluster: seconds of answers, and counts."""

    latencies: list[float]
    num_read: int
    num_fetched: int
    restart_s: float | None  # after which the killed engine was back; None if none was killed or it stayed away


def main(words: Sequence[str]) -> int:
    """Run the command line. Return the exit code."""
    return command.execute("python -m bench.cluster_check", CheckConfig, words, compare)


async def compare(config: CheckConfig, console: Console) -> int:
    """Run each number of engines, real and simulated, print and write; return the exit code."""
    before, rows = provenance.machine(), []
    with tempfile.TemporaryDirectory(prefix="heed-measured-", ignore_cleanup_errors=True) as name:
        folder = Path(name)
        crowd = await prepared(config, folder)
        for count in config.counts:
            console.print(f"{count} engines", style="dim")
            async with _running(config, folder / f"{count}", count) as heed:
                times = await measured_times(config, heed, crowd)
                real = await _real(config, heed, crowd.trace)
            times = replace(times, restart_s=real.restart_s)
            model = ReplayedModel(times, count, crowd.trace).run(config.seconds, config.seconds / 2)
            rows.append(figures(count, real, model) | {"times": asdict(times)})
    made = provenance.made("python -m bench.cluster_check", config, provenance.POCKET, before, runs_heed=False)
    command.write_json(Path(config.out) / "cluster-check.json", made | {"compared": rows})
    console.print(table(rows))
    return 1 if config.check and any(row["off"] > 100 * MOST_OFF for row in rows) else 0


@dataclass(frozen=True)
class Crowd:
    """The people who ask, and others whose answers' times are taken; of either every other one has an adapter."""

    trace: Trace
    timed: Sequence[str]


async def prepared(config: CheckConfig, folder: Path) -> Crowd:
    """Make the people, give every other one an adapter, and draw the moments at which they ask."""
    draw = random.Random(config.seed)
    async with _running(config, folder / "taught", 1) as heed:
        people = [await cluster.new_person(heed.database) for _ in range(config.people + FULL)]
        await _teach(heed, people[::2], next(_questions(config)))
    people, timed = people[: config.people], people[config.people :]
    taught = frozenset(range(0, config.people, 2))
    weights = [draw.lognormvariate(0.0, Assumptions.spread / 2) for _ in people]
    moments = itertools.accumulate(draw.expovariate(config.a_second) for _ in itertools.count())
    within = itertools.takewhile(lambda moment: moment < config.seconds, moments)
    messages = [(at_s, draw.choices(range(config.people), weights)[0]) for at_s in within]
    return Crowd(Trace(people, taught, messages), timed)


async def measured_times(config: CheckConfig, heed: MeasuredCluster, crowd: Crowd) -> Assumptions:
    """Return the times of one engine: of an answer alone and beside others, and what an adapter costs at first."""
    taught, others = crowd.timed[::2], crowd.timed[1::2]
    engines, asked = heed.engine.fleet.all(), _questions(config)
    for engine in engines:  # the first answer of all warms vLLM up
        await _took(engine.handle, others[0], next(asked))
    one = engines[0].handle
    cold = [await _took(one, person, next(asked)) for person in taught]
    alone = []
    for person in (*taught, *others) * TIMES:
        await asyncio.sleep(1 / config.a_second)  # as in the comparison: an engine that has rested takes longer
        alone.append(await _took(one, person, next(asked)))
    together: list[float] = []
    for _ in range(TIMES):
        together += await asyncio.gather(*(_took(one, person, next(asked)) for person in crowd.timed))
    one_s, full_s = statistics.mean(alone), statistics.mean(together)
    each_s = (full_s - one_s) / (FULL - 1)  # that one more answer beside it costs an answer
    answer_s, streams = one_s - each_s, Assumptions.streams
    return Assumptions(
        answer_s=answer_s, slowing=1 + each_s * streams / answer_s, slots=SLOTS, load_s=0.0,
        fetch_s=max(0.0, statistics.mean(cold) - one_s),
    )  # fmt: skip


async def _teach(heed: MeasuredCluster, people: Sequence[str], question: str) -> None:
    """Have the first one learn something, and give the others the same adapter."""
    feedback_id = await cluster.corrected(heed, people[0], question)
    outcome = await heed.engine.learn(feedback_id)
    if outcome.status != "learned":
        raise MeasurementFailed(f"the lesson was not learned: {outcome.status} {outcome.reason}")
    await heed.engine.settled()
    package = await heed.engine.check_adapter(await heed.engine.export_adapter(people[0], outcome.adapter_version))
    for person in people[1:]:
        await heed.engine.import_adapter(person, package)
    await heed.engine.settled()


async def _real(config: CheckConfig, heed: MeasuredCluster, trace: Trace) -> RealOutcome:
    """Replay the trace; where there are several engines, one is killed."""
    asked, latencies, restart_s = _questions(config), list[float](), None
    names = [known.name for known in heed.engine.fleet.all()]
    before = [await _counts(heed, name) for name in names]
    counts = []
    async with asyncio.TaskGroup() as tasks:

        async def one(at_s: float, person: str, question: str) -> None:
            await asyncio.sleep(at_s)
            latencies.append(await _took(heed.engine, person, question))

        for at_s, place in trace.messages:
            tasks.create_task(one(at_s, trace.people[place], next(asked)))
        if len(names) > 1:
            await asyncio.sleep(config.seconds / 2)
            counts.append(await _counts(heed, DIES))
            restart_s = await _killed(heed)
    counts += [await _counts(heed, name) for name in names]
    num_read, num_fetched = (sum(one[of] for one in counts) - sum(one[of] for one in before) for of in (0, 1))
    return RealOutcome(latencies, num_read, num_fetched, restart_s)


async def _took(engine: Asked, person: str, question: str) -> float:
    """Ask, once more where the engine died meanwhile. Return the seconds."""
    began_s = time.perf_counter()
    while True:
        with suppress(EngineRestarting):
            await cluster.ask(engine, person, question)
            return time.perf_counter() - began_s
        await asyncio.sleep(0.1)


async def _counts(heed: MeasuredCluster, name: str) -> tuple[int, int]:
    """Return how many adapters an engine has read for an answer, and how many of them it fetched."""
    known = heed.engine.fleet.named(name)
    if known is None:
        return 0, 0
    load = (await known.handle.state()).load
    return load.num_read, load.num_fetched


async def _killed(heed: MeasuredCluster) -> float:
    """Kill an engine. Return the seconds after which it answers again."""
    known = heed.engine.fleet.named(DIES)
    assert known is not None, "it has just been asked"
    os.kill(known.identity.pid, signal.SIGKILL)
    died_s = time.perf_counter()
    await known.gone
    while heed.engine.fleet.named(DIES) is None:  # noqa: ASYNC110
        await asyncio.sleep(0.1)
    return time.perf_counter() - died_s


def figures(count: int, real: RealOutcome, model: SimulatedOutcome) -> Figures:
    """Return the row of one number of engines."""
    pairs: dict[str, Pair] = {
        "cold_loads": (real.num_read, model.num_fetches + model.num_loads),
        "fetches": (real.num_fetched, model.num_fetches),
        "median_s": (statistics.median(real.latencies), statistics.median(model.latencies)),
    }
    most = max(abs(simulated / max(1e-9, found) - 1) for found, simulated in pairs.values())
    restart_s = 0.0 if real.restart_s is None else real.restart_s
    return {"engines": count, "answers": len(real.latencies), **pairs, "restart_s": restart_s, "off": 100 * most}


def table(rows: Sequence[Figures]) -> Table:
    """Return the rows for people."""
    made = Table(title="A cluster and its model", title_justify="left")
    for name in COLUMNS.values():
        made.add_column(name, justify="right")
    for row in rows:
        made.add_row(*(_shown(row[key]) for key in COLUMNS))
    return made


def _shown(value: float | Pair) -> str:
    return " / ".join(f"{one:.3g}" for one in value) if isinstance(value, tuple) else f"{value:.3g}"


def _questions(config: CheckConfig) -> Iterator[str]:
    return itertools.cycle(question.text for question in cases.corrected(config.seed, 24, "cluster check"))


def _running(config: CheckConfig, folder: Path, count: int) -> AbstractAsyncContextManager[MeasuredCluster]:
    """Return a cluster whose engines have empty disks; the object store is that of all of them."""
    model, objects = str(PACKAGED[provenance.POCKET]), folder.parent / "objects"
    settings = EngineConfig(model, folder, object_store=f"file://{objects}")
    return cluster.running(settings, config.database, count)


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
