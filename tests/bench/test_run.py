"""The command `heed bench`, as a whole."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from bench import run
from bench.config import BenchConfig
from tests.evals.fake_heed import FakeHeed, serving
from tests.live_heed import LiveHeed

SMALL: dict[str, Any] = {"updates": 3, "streams": 2, "rounds": 1, "questions": 2, "watched": 2}


async def test_rows_and_samples_are_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Every row can be made again from the samples beside it; how it was made and the machine's load are on record."""
    async with serving(FakeHeed()) as url:
        config = BenchConfig(**SMALL, only=("latency", "throughput"), url=url, out=str(tmp_path))
        assert await run.run_bench(config, Console(width=150)) == 0
    written = json.loads((tmp_path / "summary.json").read_text())
    again = run.rows_of(written["samples"])
    assert [row.to_json() for row in again] == written["rows"]
    assert written["machine"]["at_start"]["cores"] >= 1
    assert {"commit", "weights_sha256", "config", "settings"} <= set(written)
    assert written["samples"]["model"] == "fake"
    assert "How fast heed is" in capsys.readouterr().out


async def test_a_missed_target_is_an_exit_code_only_when_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Measuring is the job; judging is an option."""
    monkeypatch.setattr("bench.latency.TARGET_S", -1.0)
    async with serving(FakeHeed()) as url:
        for check, code in ((False, 0), (True, 1)):
            config = BenchConfig(**SMALL, only=("latency",), url=url, out=str(tmp_path), check=check)
            assert await run.run_bench(config, Console(width=150)) == code


async def test_parts_that_no_heed_answers_for_name_the_pockets_weights(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A crowd's heed is asked for nothing but answers: its model is the one that heed starts with."""

    async def measured(*_: object) -> dict[str, Any]:
        return {}

    monkeypatch.delenv("HEED_MODEL", raising=False)
    monkeypatch.setattr(run, "measure", measured)
    assert await run.run_bench(BenchConfig(only=("crowd",), out=str(tmp_path)), Console(width=150)) == 0
    written = json.loads((tmp_path / "summary.json").read_text())
    assert written["model"] == "pocket"
    assert len(written["weights_sha256"]) == 64


def test_a_wrong_part_is_one_line_and_2(capsys: pytest.CaptureFixture[str]) -> None:
    """Named with what there is."""
    assert run.main(["only=speed"]) == 2
    assert capsys.readouterr().err.startswith("heed bench: only wants some of start, intake")


@pytest.mark.engine
@pytest.mark.slow
def test_a_real_heed_can_be_benchmarked(live_heed: LiveHeed, tmp_path: Path) -> None:
    """Updates are timed by phase, streams are counted, gaps are seen, on the real engine."""
    words = [f"{key}={value}" for key, value in {**SMALL, "updates": 1}.items()]
    assert run.main([*words, "only=latency,throughput,decoding,gaps", f"url={live_heed.url}", f"out={tmp_path}"]) == 0
    written = json.loads((tmp_path / "summary.json").read_text())
    names = [row["name"].strip() for row in written["rows"]]
    assert {
        "correction sent to new adapter serving",
        "phase train",
        "adapters / base",
        "p95 during / without",
        "decoding, adapters / base",
    } <= {*names}
    assert all(sample["is_served"] for sample in written["samples"]["latency"])


def test_a_part_that_lacks_something_does_not_keep_the_others_from_being_measured(tmp_path: Path) -> None:
    """A cluster wants Ray, which the set-up of one machine does not install."""
    words = ["only=cluster", "database=postgresql://127.0.0.1/none", f"out={tmp_path}"]
    without_ray = f"import sys; sys.modules['ray'] = None; from bench import run; sys.exit(run.main({words}))"
    ended = subprocess.run([sys.executable, "-c", without_ray], capture_output=True, text=True, check=False)
    assert ended.returncode == 2
    assert ended.stderr.endswith("heed bench: cluster needs ray, which is not installed here: make setup-dev\n")
