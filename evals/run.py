"""`heed eval [key=value ...]`: measures what heed learns, prints the table, writes summary.json and steps.jsonl.

Exit codes: 0 when it measured, whatever the figures say; 1 with check=true where a figure misses its target; 2 where
it could not measure.
"""

import json
import secrets
import time
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from types import ModuleType
from typing import TextIO

from rich.console import Console

from evals import adoption, command, notes, retention, reversal, score, server, table, teacher
from evals.client import Client
from evals.config import EvalConfig
from evals.score import Figure
from evals.study import Advance, Record, Sink, Study, rehearsed_prompts

RUNNERS: dict[ModuleType, tuple[str, ...]] = {
    teacher: ("teacher",),
    notes: ("notes",),
    adoption: ("adoption", "collateral"),
    retention: ("retention", "skills"),
    reversal: ("reversal",),
}


def main(words: Sequence[str]) -> int:
    """The command line; returns the exit code."""
    return command.execute("heed eval", EvalConfig, words, run_eval)


async def run_eval(config: EvalConfig, console: Console) -> int:
    """Measures, writes and prints; returns the exit code."""
    started_s = time.time()
    folder = Path(config.out)
    with command.progress_bar() as progress:
        bar = command.Bar(progress, _units(config))
        async with server.running(config.url) as url:
            with (folder / "steps.jsonl").open("w", encoding="utf-8") as steps:
                records, model = await evaluate(config, url, bar, lambda record: _write_line(steps, record))
    rows = score.figures(records, config.only)
    save(folder, config, model, records, rows, time.time() - started_s)
    report(console, config.seeds, records, rows)
    console.print(f"written to {folder / 'summary.json'} and {folder / 'steps.jsonl'}")
    is_missed = any(row.is_met(row.median) is False for row in rows)
    return 1 if config.check and is_missed else 0


async def evaluate(
    config: EvalConfig, url: str, advance: Advance, sink: Sink = lambda _record: None
) -> tuple[list[Record], str]:
    """Runs the wanted parts against the heed at `url`; their records, and the model's name."""
    async with Client(url, config.parallel) as client:
        model = await client.model()
        study = Study(config, client, secrets.token_hex(3), advance, rehearsed_prompts(model), sink)
        for runner, parts in RUNNERS.items():
            if config.wants(*parts):
                await runner.run(study)
        await study.close()
    return study.records, model


def report(console: Console, seeds: int, records: Sequence[Record], rows: Sequence[Figure]) -> None:
    """Prints the tables."""
    console.print(table.figures(rows, seeds))
    for more in (table.preferences(score.columns(records)), table.skills(records)):
        if more is not None:
            console.print(more)
    console.print(table.lessons(score.lessons(records)))


def save(
    folder: Path, config: EvalConfig, model: str, records: Sequence[Record], rows: Sequence[Figure], seconds: float
) -> None:
    """Writes summary.json: the figures, and how they were made."""
    summary = {
        "command": "heed eval",
        "config": asdict(config),
        "model": model,
        "finished_at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "seconds": round(seconds, 1),
        "lessons": score.lessons(records),
        "figures": [row.to_json() for row in rows],
        "preferences": [column.to_json() for column in score.columns(records)],
    }
    command.write_json(folder / "summary.json", summary)


def _write_line(steps: TextIO, record: Record) -> None:
    """One judged answer or lesson, as soon as it is known."""
    steps.write(json.dumps(record, ensure_ascii=False) + "\n")
    steps.flush()


def _units(config: EvalConfig) -> int:
    return sum(runner.units(config) for runner, parts in RUNNERS.items() if config.wants(*parts))


if __name__ == "__main__":
    import sys

    raise SystemExit(main(sys.argv[1:]))
