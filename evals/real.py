"""`heed eval real [key=value ...]`: does any model that heed serves learn from one correction?

Owns the run and its files: real.jsonl person by person (an interrupted run goes on where it was) and real.json with
the figures, the commit, the machine and the weights. What is measured stands in evals/real_person.py.
"""

import json
import os
import shutil
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from engine.pocket import WEIGHTS as POCKET_WEIGHTS
from evals import command, provenance, real_score, server
from evals.arguments import described
from evals.client import Client
from evals.errors import ArgumentError
from evals.journal import Journal, unfinished
from evals.real_person import PART_WORK, RealStudy
from evals.real_world import REAL_WISHES

PARTS = tuple(PART_WORK)
MAX_PROMPTS = 36
_OF_THIS_RUN = ("parallel", "settle_s", "out", "fresh", "check")


@dataclass(frozen=True)
class RealConfig:
    """The arguments of the study."""

    model: str = described("", "the model to start, as HEED_MODEL (empty: as heed is set up)")
    only: tuple[str, ...] = described(PARTS, "which parts to measure")
    wishes: tuple[str, ...] = described(tuple(REAL_WISHES), "which of the wishes")
    seeds: int = described(3, "how often, each time with another prompt, other words and other questions")
    prompts: int = described(8, "questions asked after a lesson")
    split: str = described("test", "test: prompts nothing was tuned on; development: those to tune on")
    phrasings: str = described("fresh", "fresh: words nobody tunes on; tuned: the others")
    max_tokens: int = described(80, "the longest answer")
    training: str = described("{}", "learning settings sent with every correction, as JSON")
    parallel: int = described(8, "questions asked at once")
    settle_s: int = described(900, "the longest wait for a lesson, in seconds")
    url: str = described("", "a running heed to measure (empty: starts its own, with its own data)")
    out: str = described("evals/results", "folder for real.json and real.jsonl")
    fresh: bool = described(False, "begin anew, even if an unfinished run has left results in the folder")
    check: bool = described(False, "exit with 1 where a figure misses its target")

    def __post_init__(self) -> None:
        """Raise ArgumentError on a value nothing can be measured with."""
        _require_some("only", self.only, PARTS)
        _require_some("wishes", self.wishes, tuple(REAL_WISHES))
        _require_some("split", (self.split,), ("test", "development"))
        _require_some("phrasings", (self.phrasings,), ("fresh", "tuned"))
        for key, low, high in (("seeds", 1, 100), ("prompts", 1, MAX_PROMPTS), ("max_tokens", 8, 4096)):
            if not low <= getattr(self, key) <= high:
                raise ArgumentError(f"{key} wants a number from {low} to {high}, not {getattr(self, key)}")
        _ = self.overrides

    @property
    def overrides(self) -> dict[str, Any]:
        """The learning settings sent with every correction. Raises ArgumentError if they are no JSON object."""
        try:
            parsed = json.loads(self.training)
        except ValueError:
            parsed = None
        if not isinstance(parsed, dict):
            raise ArgumentError(f"training wants a JSON object, not {self.training!r}")
        return parsed

    @property
    def measures(self) -> dict[str, Any]:
        """The settings that the figures depend on: a run that breaks off goes on if these are the same."""
        return {key: value for key, value in asdict(self).items() if key not in _OF_THIS_RUN}


def _require_some(key: str, values: tuple[str, ...], known: tuple[str, ...]) -> None:
    if not values or set(values) - set(known):
        raise ArgumentError(f"{key} wants some of {', '.join(known)}, not {', '.join(values) or 'nothing'}")


def main(words: Sequence[str]) -> int:
    """Run the command line. Return the exit code."""
    return command.execute("heed eval real", RealConfig, words, run_real)


async def run_real(config: RealConfig, console: Console) -> int:
    """Measure, write and print; return the exit code."""
    started_s, before = time.time(), provenance.machine()
    folder = Path(config.out)
    steps, data = folder / "real.jsonl", folder / "real-heed"
    journal = begun(config, steps, data)
    settings = {"HEED_MODEL": config.model} if config.model else {}
    with command.progress_bar() as progress:
        if config.url:
            async with server.running(config.url) as url:
                model = await measure(config, url, journal, progress)
        else:
            async with server.own(settings, data) as url:
                model = await measure(config, url, journal, progress)
    summary = real_score.summarise(journal.records)
    made = made_by(config, model) | {"machine": {"at_start": before, "at_end": provenance.machine()}}
    command.write_json(folder / "real.json", made | {"seconds": round(time.time() - started_s, 1)} | summary)
    console.print(table(summary))
    journal.end()
    journal.close()
    shutil.rmtree(data, ignore_errors=True)
    console.print(f"written to {folder / 'real.json'} and {steps}")
    return 1 if config.check and not summary["is_reached"] else 0


def begun(config: RealConfig, steps: Path, data: Path) -> Journal:
    """Return a new journal, or what an interrupted run with the same arguments has left."""
    found = None if config.fresh else unfinished(steps, config.measures)
    if found is None or not (config.url or data.is_dir()):
        shutil.rmtree(data, ignore_errors=True)
        found = Journal()
    found.write_to(steps, config.measures)
    return found


async def measure(config: RealConfig, url: str, journal: Journal, progress: Any) -> str:
    """Measure the wanted parts at the heed of this address. Return the model's name."""
    bar = command.Bar(progress, config.seeds * len(config.only) * len(config.wishes))
    async with Client(url, config.parallel, config.max_tokens) as client:
        study = RealStudy(config, client, journal, bar)
        for seed in range(config.seeds):
            for part in config.only:
                await PART_WORK[part](study, seed)
        return await client.model()


def made_by(config: RealConfig, model: str) -> dict[str, Any]:
    """Return how the figures were made."""
    settings = {key: value for key, value in os.environ.items() if _is_setting(key)}
    folder = POCKET_WEIGHTS if model == "pocket" else Path(model)
    return {
        "command": "heed eval real", "model": model, "weights_sha256": provenance.weights_sha256(folder),
        "config": asdict(config), "settings": settings,
        "finished_at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        **provenance.commit(),
    }  # fmt: skip


def table(summary: dict[str, Any]) -> Table:
    """Return the table a person reads."""
    shown = Table(title="One correction, weights alone", title_justify="left")
    for title in ("part", "wish", "base", "note", "weights", "both", "ratio"):
        shown.add_column(title)
    for row in summary["wishes"]:
        values = ["-" if row[key] is None else f"{row[key]:.2f}" for key in ("base", "note", "weights", "both")]
        ratio = "the model itself cannot" if row["ratio"] is None else f"{row['ratio']:.2f}"
        shown.add_row(row["part"], row["wish"], *values, ratio)
    shown.caption = json.dumps(summary["figures"])
    return shown


def _is_setting(key: str) -> bool:
    """Return True for a variable of heed that holds no secret."""
    return key.startswith("HEED_") and not any(word in key for word in ("TOKEN", "KEY", "URL", "SECRET", "PASSWORD"))
