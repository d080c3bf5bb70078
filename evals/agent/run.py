"""`heed eval agent [key=value ...]`: the agent's tasks, and how they are done before and after corrections.

Runs the agent itself: its tools in its sandbox, its session, a heed of its own that is talked to over HTTP. Each rule
of learning has its own heed; other systems' rules get the best rate of a sweep, as in `heed eval compare`. What is
measured goes to agent.jsonl at once, and the same command goes on where an interrupted one stopped. Results: agent.json
and agent.png, with the rules side by side.
"""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from engine.pocket import PACKAGED
from evals import command, picture, provenance, server
from evals.agent import score
from evals.agent.study import PART_WORK, PARTS, AgentStudy, one_correction, units
from evals.arguments import described
from evals.client import Client
from evals.config import require_known, require_range
from evals.figure import Figure
from evals.journal import Journal, resumed
from evals.rules import RULES, variables_of
from evals.table import target, with_worst

LEARNING_PARTS = ("tasks", "correction", "lessons", "sequence")  # of other systems' rules
STEPS = "agent.jsonl"
MAX_TOKENS = 160
WORKSHOP = "workshop"  # the packaged weights that call tools
SWEEP_TASKS = 3


@dataclass(frozen=True)
class AgentConfig:
    """The arguments of the study."""

    model: str = described(WORKSHOP, "the model to start, as HEED_MODEL")
    rules: tuple[str, ...] = described(("heed", "continualcode"), "which rules of learning")
    only: tuple[str, ...] = described(PARTS, "which parts to measure")
    seeds: int = described(3, "how often, each time with other files, tasks and words")
    tasks: int = described(6, "tasks of each form, and tasks after a correction")
    parallel: int = described(8, "questions asked at once")
    out: str = described("evals/results", "folder for agent.json, agent.png and agent.jsonl")
    fresh: bool = described(False, "begin anew, even if an unfinished run has left results in the folder")
    check: bool = described(False, "exit with 1 where a figure misses its target")
    url = ""  # each rule has a heed of its own

    def __post_init__(self) -> None:
        """Raise ArgumentError on a value nothing can be measured with."""
        require_known("only", self.only, PARTS)
        require_known("rules", self.rules, tuple(RULES))
        require_range("seeds", self.seeds, 1, 100)
        require_range("tasks", self.tasks, 1, 100)
        require_range("parallel", self.parallel, 1, 32)

    def parts(self, rule: str) -> tuple[str, ...]:
        """Return what is measured of a rule."""
        return tuple(p for p in self.only if RULES[rule].is_heeds or p in LEARNING_PARTS)

    def rates(self, rule: str) -> tuple[float, ...]:
        """Return the rates to try."""
        found = RULES[rule]
        return found.rates if self.model in PACKAGED else found.real_rates


@dataclass(frozen=True)
class RuleRun:
    """One rule at one rate."""

    rule: str
    rate: float | None
    is_whole: bool

    @property
    def label(self) -> str:
        """Its name in agent.jsonl."""
        return f"{self.rule}/{'whole' if self.is_whole else f'{self.rate:g}'}"

    def settings(self, model: str) -> dict[str, str]:
        """Return the variables of its heed."""
        return variables_of(self.rule, self.rate) | {"HEED_MODEL": model}


def main(words: Sequence[str]) -> int:
    """Run the command line. Return the exit code."""
    return command.execute("heed eval agent", AgentConfig, words, run_agent)


async def run_agent(config: AgentConfig, console: Console) -> int:
    """Measure, write and print; return the exit code."""
    started_s, before = time.time(), provenance.machine()
    folder = Path(config.out)
    journal = resumed(config, folder / STEPS)
    rates: dict[str, float | None] = {}
    with command.progress_bar() as progress:
        bar = command.Bar(progress, sum(_units(config, rule) for rule in config.rules))
        for rule in config.rules:
            rates[rule] = await _measured(config, rule, journal, bar)
    found = {rule: _records(journal, _whole(rule, rates[rule]).label) for rule in config.rules}
    rows = score.figures(found, config.only)
    made = provenance.made("heed eval agent", config, config.model, before, folder)
    told = {"rates": rates, "figures": [row.to_json() for row in rows]}
    command.write_json(folder / "agent.json", made | {"seconds": round(time.time() - started_s, 1)} | told)
    (folder / "agent.png").write_bytes(_picture(rows, config.rules))
    console.print(_table(rows, rates))
    journal.end()
    journal.close()
    return 1 if config.check and any(row.is_met(row.median) is False for row in rows) else 0


async def _measured(config: AgentConfig, rule: str, journal: Journal, bar: command.Bar) -> float | None:
    """Measure a rule at the best of its rates. Return that rate, None if it has no choice."""
    adopted: dict[float, float] = {}
    for rate in config.rates(rule):
        run = RuleRun(rule, rate, is_whole=False)
        async with server.own(run.settings(config.model)) as url, _client(config, url) as client:
            await one_correction(AgentStudy(client, journal, bar, SWEEP_TASKS, run.label), seed=-1)
        adopted[rate] = score.adopted(_records(journal, run.label))
    best = max(adopted, key=adopted.__getitem__) if adopted else None
    run = _whole(rule, best)
    async with server.own(run.settings(config.model)) as url, _client(config, url) as client:
        study = AgentStudy(client, journal, bar, config.tasks, run.label)
        for seed in range(config.seeds):
            for part in config.parts(rule):
                await PART_WORK[part](study, seed)
    return best


def _whole(rule: str, rate: float | None) -> RuleRun:
    return RuleRun(rule, rate, is_whole=True)


def _client(config: AgentConfig, url: str) -> Client:
    return Client(url, config.parallel, MAX_TOKENS)


def _records(journal: Journal, label: str) -> list[dict[str, Any]]:
    return [record for record in journal.records if record["rule"] == label]


def _units(config: AgentConfig, rule: str) -> int:
    return len(config.rates(rule)) * units("correction") + config.seeds * sum(map(units, config.parts(rule)))


def _table(rows: Sequence[Figure], rates: Mapping[str, float | None]) -> Table:
    table = Table(title="The agent: median over the seeds (worst)", title_justify="left")
    table.add_column("figure")
    table.add_column("target", justify="right")
    for rule, rate in rates.items():
        table.add_column(rule if rate is None else f"{rule} ({rate:g})", justify="right")
    for row in rows:
        table.add_row(row.name, target(row), *(with_worst(row, rule) for rule in rates))
    return table


def _picture(rows: Sequence[Figure], rules: Sequence[str]) -> bytes:
    shares = [row for row in rows if row.unit == "%"]
    bars = {rule: [row.median.get(rule, 0.0) for row in shares] for rule in rules}
    return picture.bars([row.name for row in shares], bars)
