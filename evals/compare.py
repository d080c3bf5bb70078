"""`heed eval compare [key=value ...]`: several learning rules on the same people, questions and wishes, side by side.

Every rule is a setting of heed's own trainer (evals/rules.py), run by a heed of its own. heed's has its gates closed,
as shipped, and reads what feedback means; the others let everything through and teach all of it, as they do. Other
systems' rules get the best learning rate of a sweep: the one at which most of the first corrections are adopted. In the
pocket's world every part is measured; any other model over the wishes of `heed eval real`; both by CLaaS's own metrics
besides (evals/claas_probe.py). What is measured of a rule goes to compare.jsonl at once, and the same command goes on
where an interrupted one stopped. Results: compare.json, compare.html and compare.png.
"""

import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from evals import claas_probe, command, configuration, picture, provenance, report, score, server
from evals.arguments import described
from evals.arms import BASE, NOTES, WEIGHTS
from evals.claas_probe import PREFERENCES_A_SEED, ClaasProbe
from evals.client import Client, Scope
from evals.config import EvalConfig
from evals.errors import ArgumentError
from evals.figure import Figure, figure
from evals.journal import Journal, resumed
from evals.real import run as real
from evals.real import score as real_score
from evals.real.run import RealConfig
from evals.report import Picture
from evals.rules import RULES, groups_of, variables_of
from evals.run import evaluate, units
from evals.study import Advance
from evals.table import number, with_worst

STEPS = "compare.jsonl"
MEASURED = ("adoption", "collateral", "retention", "skills", "reversal", "lasting")
SWEEP_PREFERENCES = ("length", "emoji", "name", "language")
REAL_MEASURED = ("adoption", "reversal", "retention", "closed")
REAL_SWEEP = ("shorter", "one_sentence", "list", "spanish")  # smollm2 follows each with the note in its prompt
NUM_SWEPT = 2  # of the wishes, by which a rate is chosen on a real model
_RATIOS = (
    ("adoption", "mean"), ("adoption", "worst"), ("retention", "mean"), ("retention", "worst"), ("reversal", "mean"),
)  # fmt: skip
DATA = "compare-heed"  # of the heeds that are measured on a real model: its files are made once for all rules
Measurement = EvalConfig | RealConfig


@dataclass(frozen=True)
class CompareConfig:
    """The arguments of `heed eval compare`."""

    rules: tuple[str, ...] = described(tuple(RULES), "which learning rules to compare")
    model: str = described(provenance.POCKET, "pocket, or the model to compare on, as HEED_MODEL")
    wishes: tuple[str, ...] = described(REAL_SWEEP, "wishes of `heed eval real`, on a model that is not the pocket's")
    seeds: int = described(3, "how often everything is done, each time with other subjects, words and names")
    probes: int = described(6, "questions about subjects no correction was about")
    skills: int = described(100, "questions that have nothing to do with style")
    between: int = described(50, "ordinary chats between two corrections (lasting)")
    out: str = described("evals/results", "folder for compare.json, compare.html and compare.png")
    fresh: bool = described(False, "begin anew, even if an unfinished run has left results in the folder")

    def __post_init__(self) -> None:
        """Raise ArgumentError on an unknown rule, or numbers nothing can be measured with."""
        unknown = [name for name in self.rules if name not in RULES]
        if unknown or not self.rules:
            raise ArgumentError(f"rules wants some of {', '.join(RULES)}, not {', '.join(unknown) or 'nothing'}")
        _ = self.whole

    @property
    def is_real(self) -> bool:
        """True where the wishes of `heed eval real` are measured."""
        return self.model != provenance.POCKET

    def rates(self, name: str) -> tuple[float, ...]:
        """Return the learning rates to try with a rule."""
        return RULES[name].real_rates if self.is_real else RULES[name].rates

    @property
    def whole(self) -> Measurement:
        """The settings that every rule is measured with in the end."""
        if self.is_real:
            return RealConfig(
                model=self.model, only=REAL_MEASURED, wishes=self.wishes, seeds=self.seeds, prompts=self.probes,
                out=self.out,
            )  # fmt: skip
        return EvalConfig(
            only=MEASURED,
            histories=(0,),
            seeds=self.seeds,
            probes=self.probes,
            skills=self.skills,
            between=self.between,
        )

    @property
    def sweep(self) -> Measurement:
        """The figure that a learning rate is chosen by."""
        if isinstance(self.whole, RealConfig):
            return replace(self.whole, seeds=1, only=("adoption",), wishes=self.wishes[:NUM_SWEPT])
        return replace(self.whole, seeds=1, only=("adoption",), preferences=SWEEP_PREFERENCES)


@dataclass(frozen=True)
class Outcome:
    """One rule: the rate it was given, what the sweep said, and its figures."""

    name: str
    rate: float | None
    sweep: Mapping[str, float]
    rows: Sequence[Figure]

    def to_json(self, config: "CompareConfig") -> dict[str, Any]:
        """Plain values, for compare.json, with the whole configuration that the rule was measured with. Blocking."""
        trial = RuleTrial(self.name, self.rate, config.whole, is_whole=True)
        data = Path(config.out) / DATA / "data"
        folder = provenance.folder_of(config.model, data, config.model)
        return {
            "about": RULES[self.name].about, "learn": dict(RULES[self.name].learn), "rate": self.rate,
            "scope": trial.scope, "sweep": dict(self.sweep),
            "heed": configuration.of_heed(config.model, folder, data, **trial.groups),
            "figures": [row.to_json() for row in self.rows],
        }  # fmt: skip


def main(words: Sequence[str]) -> int:
    """Run the command line. Return the exit code."""
    return command.execute("heed eval compare", CompareConfig, words, run_compare)


async def run_compare(config: CompareConfig, console: Console) -> int:
    """Measures every rule, writes and prints; returns the exit code."""
    folder, before = Path(config.out), provenance.machine()
    journal = resumed(config, folder / STEPS)
    with command.progress_bar() as progress:
        bar = command.Bar(progress, sum(_units(config, name) for name in config.rules))
        outcomes = [await _one(config, name, bar, journal) for name in config.rules]
    written = provenance.made("heed eval compare", config, config.model, before, folder / DATA / "data") | {
        "rules": {outcome.name: outcome.to_json(config) for outcome in outcomes}
    }
    command.write_json(folder / "compare.json", written)
    facts = {"finished": written["finished_at"], "arguments": written["config"]} | {
        outcome.name: RULES[outcome.name].about for outcome in outcomes
    }
    report.write(folder, "Learning rules side by side", facts, [as_table(outcomes)], [drawn(outcomes)], "compare.html")
    console.print(as_table(outcomes))
    journal.end()
    journal.close()
    shutil.rmtree(folder / DATA, ignore_errors=True)
    console.print(f"written to {folder / 'compare.json'} and {folder / 'compare.html'}")
    return 0


def drawn(outcomes: Sequence[Outcome]) -> Picture:
    """Return the shares of all rules side by side; one that a rule has no value for is a dash."""
    found = {outcome.name: {row.name: _weights(row) for row in shown(outcome.rows)} for outcome in outcomes}
    names = list(dict.fromkeys(row.name for outcome in outcomes for row in shown(outcome.rows)))
    png = picture.bars(names, {rule: [shares.get(name) for name in names] for rule, shares in found.items()})
    return Picture("compare.png", "Side by side", "Weights alone, the median over the seeds.", png)


@dataclass(frozen=True)
class RuleTrial:
    """One measurement of a rule at one rate: a step of its sweep, or the whole."""

    rule: str
    rate: float | None
    config: Measurement
    is_whole: bool

    @property
    def unit(self) -> str:
        """Its name in compare.jsonl."""
        return f"{self.rule}/{'whole' if self.is_whole else f'{self.rate:g}'}"

    @property
    def groups(self) -> dict[str, dict[str, Any]]:
        """The settings of its heed, besides those of every heed here."""
        return groups_of(self.rule, self.rate)

    @property
    def settings(self) -> dict[str, str]:
        """The variables of the heed that is measured."""
        model = {"HEED_MODEL": self.config.model} if isinstance(self.config, RealConfig) else {}
        return variables_of(self.rule, self.rate) | model

    @property
    def scope(self) -> Scope:
        """How far corrections reach: as heed reads them, or, as the others teach them, always everywhere."""
        return "" if RULES[self.rule].is_heeds else "always"

    @property
    def steps(self) -> int:
        """Its steps of the progress bar."""
        return _steps(self.config) + (self.config.seeds * PREFERENCES_A_SEED if self.is_whole else 0)


async def _one(config: CompareConfig, name: str, advance: Advance, journal: Journal) -> Outcome:
    sweep = {}
    for tried in config.rates(name):
        rows = await _once(RuleTrial(name, tried, config.sweep, is_whole=False), advance, journal)
        sweep[tried] = _weights(rows[0])
    rate = max(sweep, key=lambda r: sweep[r]) if sweep else None
    rows = await _once(RuleTrial(name, rate, config.whole, is_whole=True), advance, journal)
    return Outcome(name, rate, {f"{tried:g}": adopted for tried, adopted in sweep.items()}, rows)


async def _once(trial: RuleTrial, advance: Advance, journal: Journal) -> list[Figure]:
    """Measures a rule, unless an interrupted run has."""
    if trial.unit not in journal.done:
        rows = await _measure(trial, advance)
        journal.record({"unit": trial.unit, "figures": [row.to_json() for row in rows]})
        journal.finish(trial.unit, trial.steps)
        return rows
    for _ in range(journal.done[trial.unit]):
        advance(trial.rule)
    return [Figure.of(row) for record in journal.records if record["unit"] == trial.unit for row in record["figures"]]


async def _measure(trial: RuleTrial, advance: Advance) -> list[Figure]:
    config, journal = trial.config, Journal()
    if isinstance(config, RealConfig):
        async with server.own(trial.settings, Path(config.out) / DATA) as url:
            await real.measure(config, url, journal, advance, trial.scope)
            by_claas = await _by_claas(trial, url, advance)
        return [*real_figures(real_score.summarise(journal.records)), *by_claas]
    async with server.own(trial.settings) as url:
        await evaluate(config, url, advance, journal, trial.scope)
        by_claas = await _by_claas(trial, url, advance)
    return [*score.figures(journal.records, config.only), *by_claas]


async def _by_claas(trial: RuleTrial, url: str, advance: Advance) -> list[Figure]:
    """Return CLaaS's own metrics of the whole measurement; a sweep's step needs none."""
    if not trial.is_whole:
        return []
    is_real = isinstance(trial.config, RealConfig)
    model = trial.config.model if isinstance(trial.config, RealConfig) else provenance.POCKET
    async with Client(url, trial.config.parallel, scope=trial.scope) as client:
        probe = ClaasProbe(client, Journal().run_id, advance)
        changes = await probe.measure(claas_probe.scenes_of(model, is_real=is_real), trial.config.seeds)
    return claas_probe.figures(changes)


def real_figures(found: Mapping[str, Any]) -> list[Figure]:
    """Return the figures of a real model; one that is not known has no value. The first one chooses the rate."""
    ratios = {f"{part}: ratio, {kind}": (found["figures"].get(part) or {}).get(kind) for part, kind in _RATIOS}
    lost = {"closed questions lost": (found["closed"] or {}).get("points_lost")}
    drift = {"neutral KL per token, median lesson": (found["neutral_kl"] or {}).get("median")}
    units_of = [(ratios, "%"), (lost, "points"), (drift, "nats")]
    return [
        figure(name, {WEIGHTS: [] if value is None else [value]}, unit=unit)
        for values, unit in units_of
        for name, value in values.items()
    ]


def shown(rows: Sequence[Figure]) -> list[Figure]:
    """Return the shares that stand side by side."""
    return [row for row in rows if row.unit == "%" and WEIGHTS in row.median]


def as_table(outcomes: Sequence[Outcome]) -> Table:
    """Return the figures of weights alone, a column per rule; no adapter and notes in the prompt are the controls."""
    table = Table(title="Learning rules, weights alone: median over the seeds (worst)", title_justify="left")
    for title in ("figure", "no adapter", "notes in the prompt", *(_title(outcome) for outcome in outcomes)):
        table.add_column(title, justify="left" if title == "figure" else "right")
    for place, row in enumerate(outcomes[0].rows):
        controls = (number(row.median.get(arm), row.unit) for arm in (BASE, NOTES))
        table.add_row(row.name, *controls, *(with_worst(outcome.rows[place], WEIGHTS) for outcome in outcomes))
    return table


def _title(outcome: Outcome) -> str:
    return outcome.name if outcome.rate is None else f"{outcome.name} ({outcome.rate:g})"


def _weights(row: Figure) -> float:
    return row.median.get(WEIGHTS, 0.0)


def _units(config: CompareConfig, name: str) -> int:
    whole = RuleTrial(name, None, config.whole, is_whole=True)
    return len(config.rates(name)) * _steps(config.sweep) + whole.steps


def _steps(config: Measurement) -> int:
    return real.units(config) if isinstance(config, RealConfig) else units(config)
