"""`make coverage`: one line per package, the share of its lines that the tests ran in the gateway's process."""

import json
import sys
from collections import Counter
from pathlib import Path
from typing import Any


def lines_by_package(report: dict[str, Any]) -> dict[str, tuple[int, int]]:
    """Return for each top-level package of coverage's JSON report its lines that ran and all its lines."""
    ran: Counter[str] = Counter()
    written: Counter[str] = Counter()
    for path, figures in report["files"].items():
        package = Path(path).parts[0]
        ran[package] += figures["summary"]["covered_lines"]
        written[package] += figures["summary"]["num_statements"]
    return {package: (ran[package], written[package]) for package in sorted(written)}


def main(path: str) -> None:
    """Print the table of a report."""
    for package, (ran, written) in lines_by_package(json.loads(Path(path).read_text(encoding="utf-8"))).items():
        print(f"{package:<10} {ran:>6} of {written:>6} lines  {100 * ran / written:6.2f} %")


if __name__ == "__main__":
    main(sys.argv[1])
