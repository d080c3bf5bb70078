"""The command `heed eval`, as a whole."""

import json
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from evals import run
from evals.config import EvalConfig
from tests.evals.fake_heed import FakeHeed, serving
from tests.live_heed import LiveHeed

SMALL: dict[str, Any] = {"seeds": 1, "probes": 2, "skills": 5, "preferences": ("layout",), "histories": (0,)}


async def test_figures_and_steps_are_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The summary holds every row, the steps every judged answer, and the table names the folder."""
    async with serving(FakeHeed()) as url:
        config = EvalConfig(**SMALL, only=("adoption",), url=url, out=str(tmp_path))
        assert await run.run_eval(config, Console(width=150)) == 0
    summary = json.loads((tmp_path / "summary.json").read_text())
    steps = [json.loads(line) for line in (tmp_path / "steps.jsonl").read_text().splitlines()]
    assert (summary["model"], summary["config"]["seeds"], summary["lessons"]["corrections"]) == ("fake", 1, 1)
    assert [row["is_met"] for row in summary["figures"]] == [None, True, True]
    assert len(steps) == 1 + 3 * 2
    assert "summary.json" in capsys.readouterr().out


@pytest.mark.parametrize(("check", "code"), [(True, 1), (False, 0)])
async def test_a_missed_figure_is_an_exit_code_only_when_asked_for(tmp_path: Path, check: bool, code: int) -> None:
    """Measuring is the job; judging is an option."""
    async with serving(FakeHeed("deaf")) as url:
        config = EvalConfig(**SMALL, only=("adoption",), url=url, out=str(tmp_path), check=check)
        assert await run.run_eval(config, Console(width=150)) == code


async def test_every_part_runs_and_only_those_asked_for(tmp_path: Path) -> None:
    """The bar ends full."""
    config = EvalConfig(**SMALL)
    done: list[str] = []
    async with serving(FakeHeed()) as url:
        records, _ = await run.evaluate(config, url, done.append)
    assert len(done) == run._units(config)
    assert {r["part"] for r in records} == {
        "teacher",
        "notes",
        "adoption",
        "retention",
        "adopted",
        "skills",
        "reversal",
    }


def test_no_heed_at_the_address_is_one_line_and_2(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The remedy is in the sentence."""
    assert run.main(["url=http://127.0.0.1:9", f"out={tmp_path}"]) == 2
    assert "start one with `heed run`" in capsys.readouterr().err


@pytest.mark.engine
@pytest.mark.slow
@pytest.mark.timeout(180)
def test_a_real_heed_can_be_evaluated(live_heed: LiveHeed, tmp_path: Path) -> None:
    """Every part, on the real engine, with one preference: corrections are learned and every figure is there."""
    words = ["seeds=1", "probes=2", "skills=5", "preferences=layout", "histories=0"]
    assert run.main([*words, f"url={live_heed.url}", f"out={tmp_path}"]) == 0
    summary = json.loads((tmp_path / "summary.json").read_text())
    assert summary["lessons"]["corrections"] == 4
    assert summary["lessons"]["unsettled"] == 0
    assert len(summary["figures"]) == 20
    assert all(row["median"] for row in summary["figures"] if row["judged"] != ["weights", "both"])
