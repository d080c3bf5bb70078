"""`heed eval [key=value ...]`: measures what heed learns; prints the table, writes summary.json, report.html, pictures.

What is seen goes to steps.jsonl at once, and the measured heed's data lie beside it until all is done: the same command
goes on where an interrupted one stopped. Exit codes: 0 when it measured, anything that the figures say; 1 with
check=true where a figure misses its target; 2 where it could not measure.
"""

import shutil
import time
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

from rich.console import Console

from evals import (
    adoption,
    command,
    endurance,
    fresh,
    gallery,
    lasting,
    notes,
    poison,
    provenance,
    recall,
    report,
    retention,
    reversal,
    score,
    server,
    silence,
    table,
    teacher,
)
from evals.client import Client, Scope
from evals.config import EvalConfig
from evals.figure import Figure
from evals.journal import Journal, Record, begun
from evals.study import Advance, Study, rehearsed_prompts

STEPS = "steps.jsonl"
DATA = "heed"  # of the heed that is measured, until all is done

RUNNERS: dict[ModuleType, tuple[str, ...]] = {
    teacher: ("teacher",),
    notes: ("notes",),
    adoption: ("adoption", "collateral"),
    retention: ("retention", "skills"),
    reversal: ("reversal",),
    lasting: ("lasting",),
    recall: ("recall",),
    endurance: ("endurance",),
    silence: ("silence",),
    poison: ("poison",),
    fresh: ("fresh",),
}


def main(words: Sequence[str]) -> int:
    """Run the command line. Return the exit code."""
    return command.execute("heed eval", EvalConfig, words, run_eval)


async def run_eval(config: EvalConfig, console: Console) -> int:
    """Measures, writes and prints; returns the exit code."""
    started_s, before = time.time(), provenance.machine()
    folder = Path(config.out)
    journal = begun(config, folder / STEPS, folder / DATA)
    if journal.is_resumed:
        console.print(f"going on after {len(journal.done)} units that {folder / STEPS} holds")
    with command.progress_bar() as progress:
        bar = command.Bar(progress, units(config))
        async with server.running(config.url, folder / DATA) as url:
            model = await evaluate(config, url, bar, journal)
    rows = score.figures(journal.records, config.only)
    made = provenance.made("heed eval", config, model, before, folder / DATA / "data")
    save(folder, made | {"seconds": round(time.time() - started_s, 1)}, config.seeds, journal.records, rows)
    show(console, config.seeds, journal.records, rows)
    journal.end()
    journal.close()
    shutil.rmtree(folder / DATA, ignore_errors=True)
    console.print(f"written to {folder / 'summary.json'}, {folder / report.PAGE} and {folder / STEPS}")
    is_missed = any(row.is_met(row.median) is False for row in rows)
    return 1 if config.check and is_missed else 0


async def evaluate(config: EvalConfig, url: str, advance: Advance, journal: Journal, scope: Scope = "") -> str:
    """Run the wanted parts against the heed at `url` and record what they see. Return the model's name.

    `scope` says how far corrections reach; empty: as heed reads them.
    """
    async with Client(url, config.parallel, scope=scope) as client:
        model = await client.model()
        study = Study(config, client, journal, advance, rehearsed_prompts(model))
        for runner, parts in RUNNERS.items():
            if config.wants(*parts):
                await runner.run(study)
        await study.close()
    return model


def show(console: Console, seeds: int, records: Sequence[Record], rows: Sequence[Figure]) -> None:
    """Print the tables."""
    for each in table.every(seeds, records, rows):
        console.print(each)
    console.print(table.lessons(score.lessons(records)))


def save(folder: Path, made: dict[str, Any], seeds: int, records: Sequence[Record], rows: Sequence[Figure]) -> None:
    """Write summary.json: how it was made, and the figures; and the page with tables and pictures."""
    summary: dict[str, Any] = {
        **made,
        "lessons": score.lessons(records),
        "figures": [row.to_json() for row in rows],
        "preferences": [column.to_json() for column in score.columns(records)],
    }
    command.write_json(folder / "summary.json", summary)
    facts = {
        "model": made["model"],
        "finished": summary["finished_at"],
        "arguments": summary["config"],
        "lessons": table.lessons(summary["lessons"]),
    }
    pictures = gallery.of(records)
    report.write(folder, "What heed learns", facts, table.every(seeds, records, rows), pictures)


def units(config: EvalConfig) -> int:
    """Return steps of the progress bar for the wanted parts."""
    return sum(runner.units(config) for runner, parts in RUNNERS.items() if config.wants(*parts))


if __name__ == "__main__":
    import sys

    raise SystemExit(main(sys.argv[1:]))
