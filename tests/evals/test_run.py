"""The command `heed eval`, as a whole."""

import asyncio
import json
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from evals import run, server
from evals.config import EvalConfig
from evals.errors import CallRefused
from evals.journal import Journal, begun, measured, unfinished
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
    assert {"commit", "weights_sha256", "settings", "machine"} <= set(summary)
    assert [row["is_met"] for row in summary["figures"]] == [None, True, True]
    assert len([step for step in steps if "part" in step]) == 1 + 3 * 2
    page = (tmp_path / "report.html").read_text()
    assert "one correction, 0 earlier messages: mean" in page
    assert page.count('<img src="data:image/png;base64,') == 1
    assert (tmp_path / "preferences.png").read_bytes().startswith(b"\x89PNG")
    assert "report.html" in capsys.readouterr().out


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
        await run.evaluate(config, url, done.append, journal := Journal())
    assert len(done) == run.units(config)
    assert {r["part"] for r in journal.records} == {
        "teacher",
        "notes",
        "adoption",
        "retention",
        "adopted",
        "skills",
        "reversal",
    }


@pytest.mark.parametrize(("after", "again"), [(1, 2), (5, 1)])
async def test_an_interrupted_run_goes_on_where_it_was(tmp_path: Path, after: int, again: int) -> None:
    """The same figures as in one go; only the unit that broke off is done again: two corrections, or one lesson."""
    arguments = SMALL | {"only": ("endurance", "reversal"), "updates": 4, "preferences": ("layout", "emoji")}
    figures = []
    for breaks_after in (None, after):
        fake = FakeHeed()
        async with serving(fake) as url:
            config = EvalConfig(**arguments, url=url, out=str(tmp_path))
            if breaks_after is not None:
                fake.breaks_after = breaks_after
                with pytest.raises(CallRefused):
                    await run.run_eval(config, Console(width=150))
                assert unfinished(tmp_path / run.STEPS, measured(config)) is not None
                fake.breaks_after = None
            assert await run.run_eval(config, Console(width=150)) == 0
            assert unfinished(tmp_path / run.STEPS, measured(config)) is None
        figures.append(json.loads((tmp_path / "summary.json").read_text()))
        assert len(fake.training) == 1 + 4 + 2 * 2 + (again if breaks_after is not None else 0)
    assert figures[0]["figures"] == figures[1]["figures"]
    assert figures[0]["lessons"]["corrections"] == figures[1]["lessons"]["corrections"]


async def test_a_heed_of_its_own_keeps_its_data_until_all_is_done(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An interrupted run finds them again; without them it begins anew."""
    fake, folders = FakeHeed(), list[Path]()

    @asynccontextmanager
    async def own(settings: None = None, folder: Path | None = None) -> AsyncIterator[str]:
        assert folder is not None
        await asyncio.to_thread(folder.mkdir, exist_ok=True)
        folders.append(folder)
        async with serving(fake) as url:
            yield url

    monkeypatch.setattr(server, "own", own)
    config = EvalConfig(**SMALL | {"preferences": ("layout", "emoji")}, only=("reversal",), out=str(tmp_path))
    fake.breaks_after = 2
    with pytest.raises(CallRefused):
        await run.run_eval(config, Console(width=150))
    assert folders[0].is_dir()
    assert begun(config, tmp_path / run.STEPS, tmp_path / run.DATA).is_resumed
    fake.breaks_after = None
    assert await run.run_eval(config, Console(width=150)) == 0
    assert not folders[0].exists()
    fake.breaks_after = 8
    with pytest.raises(CallRefused):
        await run.run_eval(config, Console(width=150))
    shutil.rmtree(folders[0])
    assert not begun(config, tmp_path / run.STEPS, tmp_path / run.DATA).is_resumed


def test_no_heed_at_the_address_is_one_line_and_2(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The remedy is in the sentence."""
    assert run.main(["url=http://127.0.0.1:9", f"out={tmp_path}"]) == 2
    assert "start one with `heed run`" in capsys.readouterr().err


@pytest.mark.engine
@pytest.mark.slow
def test_a_real_heed_can_be_evaluated(live_heed: LiveHeed, tmp_path: Path) -> None:
    """Every part, on the real engine, with one preference: corrections are learned and every figure is there."""
    words = ["seeds=1", "probes=2", "skills=5", "preferences=layout", "histories=0"]
    assert run.main([*words, f"url={live_heed.url}", f"out={tmp_path}"]) == 0
    summary = json.loads((tmp_path / "summary.json").read_text())
    assert summary["lessons"]["corrections"] == 4
    assert summary["lessons"]["unsettled"] == 0
    assert len(summary["figures"]) == 20
    assert all(row["median"] for row in summary["figures"] if row["judged"] != ["weights", "both"])
