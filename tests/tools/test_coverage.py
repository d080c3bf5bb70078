"""tools.coverage: the lines of coverage's report, added up by package."""

import json
from pathlib import Path

import pytest

from tools import coverage


def figures(ran: int, written: int) -> dict[str, dict[str, int]]:
    """Return one file of a report."""
    return {"summary": {"covered_lines": ran, "num_statements": written}}


def test_lines_are_added_up_by_package(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Each package has one line with the sum of its files and their share in per cent."""
    report = {
        "files": {"bot/app.py": figures(1, 2), "bot/core/core.py": figures(2, 2), "engine/engine.py": figures(0, 1)}
    }
    path = tmp_path / "coverage.json"
    path.write_text(json.dumps(report), encoding="utf-8")
    coverage.main(str(path))
    assert capsys.readouterr().out.splitlines() == [
        "bot             3 of      4 lines   75.00 %",
        "engine          0 of      1 lines    0.00 %",
    ]
