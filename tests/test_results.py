"""Committed result files: each says how it was made, and the README's figures are theirs."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from bench.gpu.run import RANDOM

ROOT = Path(__file__).resolve().parent.parent
FILES = sorted([*ROOT.glob("evals/results/*.json"), *ROOT.glob("bench/results/*.json")])
HEAD = {"commit", "is_dirty", "weights_sha256", "config", "settings", "machine"}
BEFORE_HEADS = {  # made before every result file had a whole head; nothing is added to these
    "2026-11-21-start.json", "2026-11-22.json", "2026-11-22-compare-gentle.json", "2026-11-22-compare.json",
    "2026-11-22-dashboards.json", "2026-11-22-endurance.json", "2026-11-22-gates.json", "2026-11-22-http.json",
    "2026-11-22-lasting-probe.json", "2026-11-22-lasting.json", "2026-11-22-latency.json", "2026-11-22-learning.json",
    "2026-11-22-poison.json", "2026-11-22-recall.json", "2026-11-22-reversal.json", "2026-11-22-silence.json",
    "2026-11-22-start.json", "2026-11-22-updates.json", "2026-11-23-read-intent.json", "2026-11-23-rooms-after.json",
    "2026-11-23-rooms-before.json", "2026-11-24-real-smollm2-guided.json", "2026-11-24-start-smollm2.json",
}  # fmt: skip
EVALS = {  # the README's row -> the figure's name in a result of `heed eval`, of the weights alone
    "one correction, mean of 12 preferences": "one correction, 0 earlier messages: mean",
    "six corrections in a row, held at the end": "six in a row: held at the end",
    "twelve in a row, fifty chats between, held": "lasting: held at the end",
    "the opposite correction takes effect": "opposite correction: back",
    "unrelated skills lost after six lessons, points": "skills: lost",
}
BENCHES = {  # the same of `heed bench`
    "a lesson of an 8B model on an H200, whose hardware needs .68 s at best (p95)": "a lesson's update: 0.68 s at best",
    "correction sent to new adapter serving (p95)": "correction sent to new adapter serving",
    "longest gap in another's stream, p95 with / without an update": "p95 during / without",
}
RULES = {  # the same of `heed eval agent`, by heed's rule and by continualcode's in one run
    "an agent's later tasks after one denial / by continualcode's rule": "later tasks obey, weights alone",
}
GATES = "harmful candidates stopped / good ones let through"


def measured() -> dict[str, str]:
    """Return the README's table of figures: its rows and what each says was measured."""
    text = (ROOT / "README.md").read_text(encoding="utf-8").partition("## Measured")[2].partition("\n## ")[0]
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines() if line.startswith("|")]
    return {row[0]: row[-1] for row in rows[2:]}


def told_of() -> list[dict[str, Any]]:
    """Return the result files that RESULTS names."""
    names = set(re.findall(r"\.\./((?:evals|bench)/results/[\w.-]+\.json)", (ROOT / "docs/RESULTS.md").read_text()))
    return [json.loads((ROOT / name).read_text(encoding="utf-8")) for name in sorted(names)]


def of_evals(name: str) -> Iterator[str]:
    """Yield a figure as the README writes it, from each result that has it: the median, and the worst seed."""
    for found in told_of():
        for row in found.get("figures", []) if isinstance(found.get("figures"), list) else []:
            if row["name"] == name and "weights" in row["median"]:
                scale, unit = (100, " %") if row["unit"] == "%" else (1, "")
                values = [f"{scale * row[kind]['weights']:.1f}{unit}" for kind in ("median", "worst")]
                yield f"{values[0]} ({values[1]})"


def of_benches(name: str) -> Iterator[str]:
    """Yield the same from the results of benchmarks: the median, and the 95th percentile where there is one."""
    for found in told_of():
        for row in found.get("rows", []):
            if row["name"].strip() == name:
                unit = " s" if row["unit"] == "s" else ""
                worst = "" if row["p95"] is None else f" ({row['p95']:.2f}{unit})"
                yield f"{row['median']:.2f}{unit}{worst}"


def of_rules(name: str) -> Iterator[str]:
    """Yield a share by heed's rule and by continualcode's, from results that have both: median, worst seed."""
    for found in told_of():
        for row in found.get("figures", []) if isinstance(found.get("figures"), list) else []:
            if row["name"] == name and {"heed", "continualcode"} <= set(row["median"]):
                sides = [(row["median"][rule], row["worst"][rule]) for rule in ("heed", "continualcode")]
                yield " / ".join(f"{100 * median:.1f} % ({100 * worst:.1f} %)" for median, worst in sides)


def of_gates() -> Iterator[str]:
    """Yield the harmful candidates that were stopped and the good ones that were not."""
    for kinds in (found["kinds"] for found in told_of() if "kinds" in found):
        harmful = [kind for name, kind in kinds.items() if name != "good"]
        stopped, number = (sum(kind[key] for kind in harmful) for key in ("refused", "number"))
        good = kinds["good"]
        yield f"{stopped} of {number} / {good['number'] - good['refused']} of {good['number']}"


@pytest.mark.parametrize("file", [file for file in FILES if file.name not in BEFORE_HEADS], ids=lambda file: file.name)
def test_a_result_says_how_it_was_made(file: Path) -> None:
    """The commit, the weights' hash, the configuration, and the machine with its load at the start and at the end."""
    found = json.loads(file.read_text(encoding="utf-8"))
    assert set(found) >= HEAD
    assert re.fullmatch("[0-9a-f]{40}", found["commit"])
    if found["model"] == RANDOM:  # drawn anew for each run: there is nothing to know them by
        assert found["weights_sha256"] is None
    else:
        assert re.fullmatch("[0-9a-f]{64}", found["weights_sha256"])
    for moment in ("at_start", "at_end"):
        assert len(found["machine"][moment]["load"]) == 3
        assert found["machine"][moment]["cpu"]


def test_the_readmes_figures_are_those_of_committed_results() -> None:
    """Each row of its table stands, to its last digit, in a file that RESULTS names."""
    rows = measured()
    assert set(rows) == {*EVALS, *BENCHES, *RULES, GATES}
    for row, name in EVALS.items():
        assert rows[row] in set(of_evals(name)), row
    for row, name in BENCHES.items():
        assert rows[row] in set(of_benches(name)), row
    for row, name in RULES.items():
        assert rows[row] in set(of_rules(name)), row
    assert rows[GATES] in set(of_gates())
