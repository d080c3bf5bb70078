"""`python -m tests.contract.fuzz cases=5000`: calls a whole heed in every way its OpenAPI document has; table and JSON.

The engine is the fake one; everything else is real. Exit codes: 0 where no answer was a server error or off the
document; 1 otherwise; 2 where it could not run.
"""

import asyncio
import logging
import sys
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from evals import command
from evals.arguments import described
from evals.errors import ArgumentError
from tests.contract.explorer import Explorer
from tests.contract.served import served

WEIGHTS = {"POST /v1/chat/completions": 4, "POST /v1/feedback": 4, "POST /v1/users/{user}/commands": 4}
BEFORE_OTHERS = {"/v1/chat/completions": 0, "/api/sessions": 0, "/v1/feedback": 1, "/api/sessions/{id}/prompt": 1}


@dataclass(frozen=True)
class FuzzConfig:
    """The arguments."""

    cases: int = described(5000, "calls, over all paths and methods")
    seed: int = described(0, "which ones")
    only: str = described("", "a part of the name of the calls to make (empty: all)")
    out: str = described("tests/contract/results", "folder for openapi.json")

    def __post_init__(self) -> None:
        """Raises ArgumentError where nothing would be called."""
        if not 1 <= self.cases <= 1_000_000:
            raise ArgumentError(f"cases wants a number from 1 to 1000000, not {self.cases}")


def shares(labels: list[str], cases: int) -> dict[str, int]:
    """How many cases each call gets: at least `cases` together, more for those that do more."""
    whole = sum(WEIGHTS.get(label, 1) for label in labels)
    return {label: -(-cases * WEIGHTS.get(label, 1) // whole) for label in labels}


def fuzz(config: FuzzConfig) -> Explorer:
    """Blocking: makes the calls, those that bring something into being first."""
    with served() as url:
        explorer = Explorer(url)
        labels = sorted((label for label in explorer.operations if config.only in label), key=_order)
        for label, cases in shares(labels, config.cases).items():
            explorer.explore(label, cases, config.seed)
    return explorer


def summary(config: FuzzConfig, explorer: Explorer, wall_s: float) -> dict[str, Any]:
    """Return the figures that are written."""
    tallies = {label: tally for label, tally in explorer.tallies.items() if tally.cases}
    return {
        "command": "python -m tests.contract.fuzz",
        "config": asdict(config),
        "finished_at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "wall_s": round(wall_s, 1),
        "cases": sum(tally.cases for tally in tallies.values()),
        "server_errors": sum(n for t in tallies.values() for status, n in t.statuses.items() if status >= 500),
        "violations": len(explorer.findings),
        "calls": {
            label: {**asdict(tally), "statuses": {str(status): n for status, n in sorted(tally.statuses.items())}}
            for label, tally in tallies.items()
        },
        "findings": [asdict(finding) for finding in explorer.findings.values()],
    }


def table(found: dict[str, Any]) -> Table:
    """The figures."""
    shown = Table(title=f"{found['cases']} calls", title_justify="left")
    for name in ("call", "cases", "broken on purpose", "statuses", "violations"):
        shown.add_column(name, justify="left" if name in ("call", "statuses") else "right")
    for label, tally in found["calls"].items():
        statuses = " ".join(f"{status}:{n}" for status, n in tally["statuses"].items())
        wrong = sum(finding["call"] == label for finding in found["findings"])
        shown.add_row(label, str(tally["cases"]), str(tally["broken"]), statuses, str(wrong))
    return shown


async def run(config: FuzzConfig, console: Console) -> int:
    """Calls, writes and prints; returns the exit code."""
    logging.disable(logging.ERROR)  # what heed logs of its own errors is counted here
    started_s = time.monotonic()
    explorer = await asyncio.to_thread(fuzz, config)
    found = summary(config, explorer, time.monotonic() - started_s)
    path = Path(config.out) / "openapi.json"
    command.write_json(path, found)
    console.print(table(found))
    for finding in found["findings"]:
        console.print(f"{finding['call']}: {finding['check']}: {finding['message']}\n  {finding['curl']}", markup=False)
    console.print(f"{found['server_errors']} server errors, {found['violations']} violations; written to {path}")
    return 1 if found["server_errors"] or found["violations"] else 0


def _order(label: str) -> tuple[int, int]:
    method, path = label.split(" ", 1)
    first = BEFORE_OTHERS.get(path, 2)
    return first + ["POST", "PATCH", "GET", "DELETE"].index(method) * (first == 2), -len(path)


if __name__ == "__main__":
    raise SystemExit(command.execute("python -m tests.contract.fuzz", FuzzConfig, sys.argv[1:], run))
