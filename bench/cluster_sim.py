"""`python -m bench.cluster_sim [key=value ...]`: a cluster of up to a thousand engines for a million people, simulated.

Prints a table and writes cluster-sim.json. Exit codes: 0 when it ran; 2 where the arguments are wrong.
"""

import asyncio
import statistics
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from rich.console import Console
from rich.table import Table

from bench.cluster_model import Assumptions, ClusterModel, SimulatedOutcome, engines_for
from bench.figures import p99
from evals import command, provenance
from evals.arguments import described
from evals.config import require_range
from evals.errors import ArgumentError

HOURS_A_MONTH = 730
COLUMNS = {
    "engines": "engines",
    "answers_a_second": "answers/s",
    "busiest": "busiest engine / mean",
    "fetches": "fetched of 1,000 answers",
    "loads": "loaded of 1,000",
    "store_mb_a_second": "store MB/s",
    "p50_s": "answer p50 s",
    "p99_s": "p99 s",
    "lesson_wait_p99_s": "lesson's wait p99 s",
    "moved_percent": "moved by one's death %",
    "month_a_person": "a person's month $",
}


@dataclass(frozen=True)
class SimConfig:
    """The arguments of the simulation; what else is assumed stands in `bench.cluster_model.Assumptions`."""

    people: int = described(Assumptions.people, "people")
    engines: str = described("auto,1,10,100,1000", "numbers of engines; auto: as many as the peak takes")
    minutes: float = described(10.0, "of the busiest hour")
    death: bool = described(True, "in the middle of it an engine dies")
    messages_a_day: float = described(Assumptions.messages_a_day, "of a person, in the mean")
    seed: int = described(0, "of people and moments")
    out: str = described("bench/results", "folder for cluster-sim.json")

    def __post_init__(self) -> None:
        """Raise ArgumentError on a value nothing can be simulated with."""
        require_range("people", self.people, 1, 10_000_000)
        if not 0.1 <= self.minutes <= 1440:
            raise ArgumentError(f"minutes wants a number from 0.1 to 1440, not {self.minutes}")
        if not self.messages_a_day > 0:
            raise ArgumentError(f"messages_a_day wants a positive number, not {self.messages_a_day}")
        if not all(word == "auto" or (word.isdecimal() and 1 <= int(word) <= 10_000) for word in self._words):
            raise ArgumentError(f"engines wants numbers from 1 to 10000 or auto, not {self.engines}")

    @property
    def assumed(self) -> Assumptions:
        """The model's parameters."""
        return Assumptions(people=self.people, messages_a_day=self.messages_a_day)

    @property
    def counts(self) -> list[int]:
        """The numbers of engines, each once, in their order."""
        wanted = {engines_for(self.assumed) if word == "auto" else int(word) for word in self._words}
        return sorted(wanted)

    @property
    def _words(self) -> list[str]:
        return self.engines.split(",")


def main(words: Sequence[str]) -> int:
    """Run the command line. Return the exit code."""
    return command.execute("python -m bench.cluster_sim", SimConfig, words, simulate, is_killed=True)


async def simulate(config: SimConfig, console: Console) -> int:
    """Simulate each number of engines, print and write; return the exit code."""
    rows, before = [], provenance.machine()
    for count in config.counts:
        model, seconds = ClusterModel(config.assumed, count, config.seed), config.minutes * 60
        outcome = await asyncio.to_thread(model.run, seconds, seconds / 2 if config.death else None)
        rows.append(figures(config, count, outcome))
        console.print(f"{count} engines: {len(outcome.latencies)} answers", style="dim")
    made = provenance.made("python -m bench.cluster_sim", config, provenance.POCKET, before, runs_heed=False)
    told = {"assumed": asdict(config.assumed), "simulated": rows}
    command.write_json(Path(config.out) / "cluster-sim.json", made | told)
    console.print(table(rows))
    return 0


def figures(config: SimConfig, count: int, outcome: SimulatedOutcome) -> dict[str, float]:
    """Return the row of one number of engines."""
    seconds, answers = config.minutes * 60, max(1, len(outcome.latencies))
    assumed, counts = config.assumed, list(outcome.answers.values())
    return {
        "engines": count,
        "answers_a_second": answers / seconds,
        "busiest": max(counts) / max(1e-9, statistics.mean(counts)),
        "fetches": outcome.num_fetches / answers * 1000,
        "loads": outcome.num_loads / answers * 1000,
        "store_mb_a_second": (outcome.num_fetches + outcome.num_lessons) * assumed.adapter_mb / seconds,
        "p50_s": statistics.median(outcome.latencies or [0.0]),
        "p99_s": _p99(outcome.latencies),
        "lesson_wait_p99_s": _p99(outcome.lesson_waits),
        "moved_percent": outcome.num_moved / max(1, outcome.num_seen) * 100,
        "month_a_person": count * assumed.engine_hour * HOURS_A_MONTH / config.people,
    }


def table(rows: Sequence[dict[str, float]]) -> Table:
    """Return the rows for people."""
    made = Table(title="A cluster, simulated", title_justify="left")
    for name in COLUMNS.values():
        made.add_column(name, justify="right")
    for row in rows:
        made.add_row(*(f"{row[key]:.3g}" if key != "engines" else str(count_of(row)) for key in COLUMNS))
    return made


def count_of(row: dict[str, float]) -> int:
    """Return a row's number of engines."""
    return int(row["engines"])


def _p99(values: Sequence[float]) -> float:
    return p99(values) if len(values) > 1 else 0.0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
