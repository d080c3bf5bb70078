"""`heed eval compare [key=value ...]`: several learning rules on the same people, questions and wishes, side by side.

Every rule is a setting of heed's own trainer, run by a heed of its own. heed's has its gates closed, as shipped; those
of the others let everything through, as they have none, and feedback is told to their teachers in their own words.
Other systems' rules get the best learning rate of a sweep: the one at which most of the
first corrections are adopted. In the pocket's world every part is measured; any other model over the wishes of
`heed eval real`, each rule with its own number of steps. What is measured of a rule goes to compare.jsonl at once, and
the same command goes on where an interrupted one stopped. Results: compare.json, compare.html and compare.png.
"""

import json
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from evals import command, picture, provenance, real, real_score, report, score, server
from evals.arguments import described
from evals.arms import NOTES, WEIGHTS
from evals.config import EvalConfig
from evals.errors import ArgumentError
from evals.figure import Figure, figure
from evals.journal import Journal, measured, unfinished
from evals.real import RealConfig
from evals.report import Picture
from evals.run import evaluate, units
from evals.study import Advance
from evals.table import number

STEPS = "compare.jsonl"
MEASURED = ("adoption", "collateral", "retention", "skills", "reversal", "lasting")
SWEEP_PREFERENCES = ("length", "emoji", "name", "language")
OPEN_GATES: dict[str, float] = {
    "max_value_change": 1e9, "max_divergence_left": 1e9, "min_margin_gain": -1e9, "max_anchor_divergence": 1e9,
    "max_earlier_drop": 1e9, "max_gold_drop": 1e9, "max_unasked": 1e9, "max_unasked_worst": 1e9,
    "min_entropy_ratio": 0.0, "max_self_rouge": 1.0, "max_drift": 1e9,
}  # fmt: skip
ALONE = {  # one sample, nothing held still, and the whole parent: what the other systems have in common
    "num_counterfactuals": 0, "num_teacher_rollouts": 0, "num_anchors": 0, "parent_rate": 1.0, "parent_share": 1.0,
    "schedule": "constant", "min_divergence": 0.0,
    # and nothing that a model's calibration would add
    "reads_hindsight": True, "reads_own_note": False, "shows_rewrites": True,
    "opening_weight": 1.0, "closing_weight": 1.0, "guidance_scale": 1.0,
}  # fmt: skip


REAL_MEASURED = ("adoption", "reversal", "retention", "closed")
REAL_SWEEP = ("shorter", "lowercase", "formal", "longer")
NUM_SWEPT = 2  # of the wishes, by which a rate is chosen on a real model
_RATIOS = (
    ("adoption", "mean"), ("adoption", "worst"), ("retention", "mean"), ("retention", "worst"), ("reversal", "mean"),
)  # fmt: skip
DATA = "compare-heed"  # of the heeds that are measured on a real model: its files are made once for all rules
Measurement = EvalConfig | RealConfig


@dataclass(frozen=True)
class Rule:
    """One way of learning: settings of the trainer, and the learning rates to try (none: the shipped one)."""

    about: str
    learn: Mapping[str, Any]
    rates: tuple[float, ...] = ()
    real_rates: tuple[float, ...] = ()  # on a model that is not the pocket's
    has_gates: bool = False


RULES: dict[str, Rule] = {
    "heed": Rule("the shipped defaults, gates closed", {}, has_gates=True),
    "claas": Rule(
        "frozen base teacher, newest feedback only, top-100 JSD 0.5, one step, the optimizer kept",
        {**ALONE, "reads_notes": False, "divergence": "jsd", "jsd_alpha": 0.5, "top_k": 100, "steps": 1,
         "keeps_optimizer": True, "hindsight_wording": "claas"},
        (1e-2, 3e-2, 1e-1, 3e-1, 1.0),
        (1e-3, 3e-3, 1e-2, 3e-2),
    ),
    "continualcode": Rule(
        "current teacher, newest feedback only, sampled-token advantage, one step, the optimizer kept",
        {**ALONE, "reads_notes": False, "teacher": "current", "divergence": "sampled_token", "steps": 1,
         "keeps_optimizer": True, "hindsight_wording": "sdpo"},
        (1e-2, 3e-2, 1e-1, 3e-1, 1.0),
        (1e-3, 3e-3, 1e-2, 3e-2),
    ),
    "sft": Rule(
        "fine-tuning on what the teacher makes of the corrected answer, ten steps",
        {**ALONE, "divergence": "hard_label", "num_teacher_rollouts": 1, "steps": 10},
        (1e-3, 3e-3, 1e-2, 3e-2),
        (1e-4, 3e-4, 1e-3, 3e-3),
    ),
}  # fmt: skip


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

    def to_json(self) -> dict[str, Any]:
        """Plain values, for compare.json."""
        rule = {"about": RULES[self.name].about, "learn": dict(RULES[self.name].learn)}
        return {**rule, "rate": self.rate, "sweep": dict(self.sweep), "figures": [r.to_json() for r in self.rows]}


def main(words: Sequence[str]) -> int:
    """Run the command line. Return the exit code."""
    return command.execute("heed eval compare", CompareConfig, words, run_compare)


async def run_compare(config: CompareConfig, console: Console) -> int:
    """Measures every rule, writes and prints; returns the exit code."""
    folder, before = Path(config.out), provenance.machine()
    journal = (None if config.fresh else unfinished(folder / STEPS, measured(config))) or Journal()
    journal.write_to(folder / STEPS, measured(config))
    with command.progress_bar() as progress:
        bar = command.Bar(progress, sum(_units(config, name) for name in config.rules))
        outcomes = [await _one(config, name, bar, journal) for name in config.rules]
    written = provenance.made("heed eval compare", config, config.model, before, folder / DATA / "data") | {
        "rules": {outcome.name: outcome.to_json() for outcome in outcomes}
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
    """Return the shares of all rules side by side."""
    bars = {o.name: [_weights(row) for row in shown(o.rows)] for o in outcomes}
    png = picture.bars([row.name for row in shown(outcomes[0].rows)], bars)
    return Picture("compare.png", "Side by side", "Weights alone, the median over the seeds.", png)


async def _one(config: CompareConfig, name: str, advance: Advance, journal: Journal) -> Outcome:
    sweep = {rate: await _adopted(config.sweep, name, rate, advance, journal) for rate in config.rates(name)}
    rate = max(sweep, key=lambda r: sweep[r]) if sweep else None
    rows = await _once(f"{name}/whole", config.whole, name, rate, advance, journal)
    return Outcome(name, rate, {f"{tried:g}": adopted for tried, adopted in sweep.items()}, rows)


async def _adopted(config: Measurement, name: str, rate: float, advance: Advance, journal: Journal) -> float:
    return _weights((await _once(f"{name}/{rate:g}", config, name, rate, advance, journal))[0])


async def _once(
    unit: str, config: Measurement, name: str, rate: float | None, advance: Advance, journal: Journal
) -> list[Figure]:
    """Measures a rule, unless an interrupted run has."""
    if unit not in journal.done:
        rows = await _measure(config, name, rate, advance)
        journal.record({"unit": unit, "figures": [row.to_json() for row in rows]})
        journal.finish(unit, _steps(config))
        return rows
    for _ in range(journal.done[unit]):
        advance(name)
    return [Figure.of(row) for record in journal.records if record["unit"] == unit for row in record["figures"]]


async def _measure(config: Measurement, name: str, rate: float | None, advance: Advance) -> list[Figure]:
    learn = {**RULES[name].learn, **({} if rate is None else {"learning_rate": rate})}
    settings = {"HEED_LEARN": json.dumps(learn)}
    if not RULES[name].has_gates:
        settings["HEED_GATE"] = json.dumps(OPEN_GATES)
    journal = Journal()
    if isinstance(config, RealConfig):
        settings["HEED_MODEL"] = config.model
        async with server.own(settings, Path(config.out) / DATA) as url:
            await real.measure(config, url, journal, advance)
        return real_figures(real_score.summarise(journal.records))
    async with server.own(settings) as url:
        await evaluate(config, url, advance, journal)
    return score.figures(journal.records, config.only)


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
    """Return the figures of weights alone, a column per rule; the notes in the prompt are the control."""
    table = Table(title="Learning rules, weights alone: median over the seeds", title_justify="left")
    for title in ("figure", "notes in the prompt", *(_title(outcome) for outcome in outcomes)):
        table.add_column(title, justify="left" if title == "figure" else "right")
    for number_of_row, row in enumerate(outcomes[0].rows):
        values = [o.rows[number_of_row].median.get(WEIGHTS) for o in outcomes]
        table.add_row(row.name, *(number(value, row.unit) for value in (row.median.get(NOTES), *values)))
    return table


def _title(outcome: Outcome) -> str:
    return outcome.name if outcome.rate is None else f"{outcome.name} ({outcome.rate:g})"


def _weights(row: Figure) -> float:
    return row.median.get(WEIGHTS, 0.0)


def _units(config: CompareConfig, name: str) -> int:
    return len(config.rates(name)) * _steps(config.sweep) + _steps(config.whole)


def _steps(config: Measurement) -> int:
    return real.units(config) if isinstance(config, RealConfig) else units(config)
