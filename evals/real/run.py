"""`heed eval real [key=value ...]`: does any model that heed serves learn from one correction?

Owns the run and its files: real.jsonl unit by unit (an interrupted run goes on where it was) and real.json with the
figures, the commit, the machine and the weights. Parts can be measured in runs of their own, with folders of their own,
and told together (`also=`). What is measured stands in evals/real/person.py and beside it.
"""

import json
import shutil
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from evals import command, provenance, server
from evals.arguments import described
from evals.client import Client, Scope
from evals.config import learning_settings, require_known, require_range
from evals.errors import ArgumentError
from evals.journal import Journal, Record, begun
from evals.real import facts, person, remarks, score, sequence
from evals.real.study import RealStudy
from evals.real.world import REAL_WISHES

PART_WORK: dict[str, Callable[[RealStudy, int], Awaitable[None]]] = {
    "adoption": person.adoption,
    "reversal": person.reversal,  # right behind the part whose persons it goes on with
    "rewritten": person.rewritten,
    "retention": sequence.retention,
    "closed": sequence.closed,
    "remarks": remarks.remarks,
    "facts": facts.facts,
}
PARTS = tuple(PART_WORK)
WISH_PARTS = ("adoption", "reversal", "rewritten")
MAX_PROMPTS = 18  # of the 36 of a split: adoption and reversal ask one person different ones


@dataclass(frozen=True)
class RealConfig:
    """The arguments of the study."""

    model: str = described("", "the model to start, as HEED_MODEL (empty: as heed is set up)")
    only: tuple[str, ...] = described(PARTS, "which parts to measure")
    wishes: tuple[str, ...] = described(tuple(REAL_WISHES), "which of the wishes")
    seeds: int = described(3, "how often, each time with another prompt, other words and other questions")
    first: int = described(0, "the first seed, where earlier runs had those before it and count by also=")
    prompts: int = described(8, "questions asked after a lesson")
    split: str = described("test", "test: prompts nothing was tuned on; development: those to tune on")
    phrasings: str = described("fresh", "fresh: words nobody tunes on; tuned: the others")
    max_tokens: int = described(120, "the longest answer")
    training: str = described("{}", "learning settings sent with every correction, as JSON")
    parallel: int = described(8, "questions asked at once")
    settle_s: int = described(900, "the longest wait for a lesson, in seconds")
    also: tuple[str, ...] = described((), "folders of earlier runs of this model whose records count, too")
    url: str = described("", "a running heed to measure (empty: starts its own, with its own data)")
    out: str = described("evals/results", "folder for real.json and real.jsonl")
    fresh: bool = described(False, "begin anew, even if an unfinished run has left results in the folder")
    check: bool = described(False, "exit with 1 where a figure misses its target")

    def __post_init__(self) -> None:
        """Raise ArgumentError on a value nothing can be measured with."""
        require_known("only", self.only, PARTS)
        require_known("wishes", self.wishes, tuple(REAL_WISHES))
        require_known("split", (self.split,), ("test", "development"))
        require_known("phrasings", (self.phrasings,), ("fresh", "tuned"))
        require_range("seeds", self.seeds, 1, 100)
        require_range("first", self.first, 0, 100)
        require_range("prompts", self.prompts, 1, MAX_PROMPTS if self.split == "test" else MAX_PROMPTS - 4)
        require_range("max_tokens", self.max_tokens, 8, 4096)
        _ = self.overrides

    @property
    def numbers(self) -> range:
        """The numbers of the seeds."""
        return range(self.first, self.first + self.seeds)

    @property
    def overrides(self) -> dict[str, Any]:
        """The learning settings sent with every correction. Raises ArgumentError where no trainer takes them."""
        return learning_settings(self.training)


def main(words: Sequence[str]) -> int:
    """Run the command line. Return the exit code."""
    return command.execute("heed eval real", RealConfig, words, run_real)


async def run_real(config: RealConfig, console: Console) -> int:
    """Measure, write and print; return the exit code."""
    started_s, before = time.time(), provenance.machine()
    folder = Path(config.out)
    steps, data = folder / "real.jsonl", folder / "real-heed"
    others = [steps_of(Path(name)) for name in config.also]
    journal = begun(config, steps, data)
    settings = {"HEED_MODEL": config.model} if config.model else {}
    with command.progress_bar() as progress:
        bar = command.Bar(progress, units(config))
        async with server.running(config.url, data, settings) as url:
            model = await measure(config, url, journal, bar)
    summary = score.summarise([*(record for other in others for record in records_of(other)), *journal.records])
    made = provenance.made("heed eval real", config, model, before, data / "data")
    command.write_json(folder / "real.json", made | {"seconds": round(time.time() - started_s, 1)} | summary)
    console.print(targets_table(summary), wishes_table(summary))
    journal.end()
    journal.close()
    shutil.rmtree(data, ignore_errors=True)
    console.print(f"written to {folder / 'real.json'} and {steps}")
    return 1 if config.check and not summary["is_reached"] else 0


def steps_of(folder: Path) -> Path:
    """Return the file of another run. Raises ArgumentError where there is none."""
    steps = folder / "real.jsonl"
    if not steps.is_file():
        raise ArgumentError(f"also names {folder}, where there is no real.jsonl of a run")
    return steps


def records_of(steps: Path) -> list[Record]:
    """Return the records of another run, which may end beside this one. Raises ArgumentError if it has not yet."""
    found: list[Record] = [json.loads(line) for line in steps.read_text(encoding="utf-8").splitlines()]
    if not found or not found[-1].get("end"):
        raise ArgumentError(
            f"also names {steps.parent}, whose run has not ended: give the same command again when it has"
        )
    return found


async def measure(config: RealConfig, url: str, journal: Journal, bar: Callable[[str], None], scope: Scope = "") -> str:
    """Measure the wanted parts at the heed of this address. Return the model's name.

    `scope` says how far corrections reach; empty: as heed reads them.
    """
    async with Client(url, config.parallel, config.max_tokens, scope) as client:
        study = RealStudy(config, client, journal, bar)
        for seed in config.numbers:
            for part in (part for part in PARTS if part in config.only):
                await PART_WORK[part](study, seed)
        return await client.model()


def units(config: RealConfig) -> int:
    """Return steps of the progress bar."""
    of_wishes = sum(person.lessons_of(p, config.wishes) for p in config.only if p in WISH_PARTS)
    of_sequence = (2 + len(config.wishes)) * sum(part in config.only for part in ("retention", "closed"))
    once = ("closed" in config.only) + len(remarks.KINDS) * ("remarks" in config.only)
    more = sum(part in config.only for part in ("closed", "facts"))  # the closed questions with notes, and facts
    return config.seeds * (of_wishes + of_sequence + more) + once


def targets_table(summary: dict[str, Any]) -> Table:
    """Return the figures beside their targets."""
    shown = Table(title="A real model", title_justify="left")
    for title in ("figure", "target", "measured", ""):
        shown.add_column(title)
    for row in (row for row in summary["targets"] if row["value"] is not None):
        sign = ">=" if row["is_at_least"] else "<="
        target = "" if row["target"] is None else f"{sign} {row['target']:g}"
        verdict = {True: "met", False: "missed", None: ""}[row["is_met"]]
        shown.add_row(row["name"], target, f"{row['value']:.3f}", verdict)
    return shown


def wishes_table(summary: dict[str, Any]) -> Table:
    """Return the shares of each wish in each part."""
    shown = Table(title="Wish by wish", title_justify="left")
    for title in ("part", "wish", "base", "note", "weights", "both", "ratio"):
        shown.add_column(title)
    for row in summary["wishes"]:
        values = ["-" if row[key] is None else f"{row[key]:.2f}" for key in score.ARMS]
        shown.add_row(row["part"], row["wish"], *values, _ratio(row))
    return shown


def _ratio(row: dict[str, Any]) -> str:
    """Return the ratio of a wish in a part; of its ceiling, if the model follows it with the note in its prompt."""
    is_ceiling = row["part"] == score.CEILING
    ratio = score.ratio_of(row["base"], row["note"], row["note"]) if is_ceiling else row["ratio"]
    if ratio is None:
        return "the model itself cannot"
    return "the model can" if is_ceiling else f"{ratio:.2f}"
