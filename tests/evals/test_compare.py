"""`heed eval compare`: rules side by side."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from aiohttp.test_utils import TestServer
from rich.console import Console

from evals import compare, picture, server
from evals.compare import CompareConfig, Outcome
from evals.errors import ArgumentError, StartFailed
from evals.figure import figure
from evals.rules import RULES
from tests.evals.brief_heed import BriefHeed
from tests.evals.fake_heed import FakeHeed, serving

SMALL = {"seeds": 1, "probes": 2, "skills": 5, "between": 2}


def test_an_unknown_rule_is_named() -> None:
    """And the known ones are listed."""
    with pytest.raises(ArgumentError, match="heed, claas, continualcode, sft, not magic"):
        CompareConfig(rules=("magic",))


async def test_a_rule_gets_the_rate_that_the_sweep_liked_best(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A heed that learns at one rate only: that rate is taken, measured with everything, drawn and written."""
    started: list[float | None] = []
    scopes: dict[float | None, set[str]] = {}

    @asynccontextmanager
    async def own(settings: dict[str, str]) -> AsyncIterator[str]:
        rate = json.loads(settings["HEED_LEARN"]).get("learning_rate")
        assert ("HEED_GATE" in settings) == (rate is not None)  # heed's own rule is measured with its gates closed
        started.append(rate)
        heed = FakeHeed("perfect" if rate in (None, 3e-3) else "deaf")
        async with serving(heed) as url:
            yield url
        scopes[rate] = set(heed.scopes)

    monkeypatch.setattr(server, "own", own)
    config = CompareConfig(**SMALL, rules=("heed", "sft"), out=str(tmp_path))
    assert await compare.run_compare(config, Console(width=150)) == 0
    assert started == [None, *RULES["sft"].rates, 3e-3]
    assert scopes == {None: {""}} | {rate: {"always"} for rate in RULES["sft"].rates}  # others do not ask what is meant
    whole = json.loads((tmp_path / "compare.json").read_text())
    assert {"commit", "weights_sha256", "settings", "machine"} <= set(whole)
    written = whole["rules"]
    told = {name: rule["heed"] for name, rule in written.items()}
    assert (told["heed"]["learn"]["divergence"], told["sft"]["learn"]["divergence"]) == ("forward_kl", "hard_label")
    assert told["sft"]["learn"]["learning_rate"] == 3e-3
    assert told["sft"]["gate"]["max_drift"] > told["heed"]["gate"]["max_drift"]
    assert (written["heed"]["rate"], written["sft"]["rate"]) == (None, 3e-3)
    assert written["sft"]["sweep"] == {"0.001": 0.0, "0.003": 1.0, "0.01": 0.0, "0.03": 0.0}
    assert (tmp_path / "compare.png").read_bytes().startswith(b"\x89PNG")
    for rule in written.values():
        row = next(row for row in rule["figures"] if row["name"] == "CLaaS: compliance")
        assert (row["seeds"], row["worst"]["weights"]) == ({"base": [0.0], "weights": [1.0]}, 1.0)
    shown = capsys.readouterr().out
    assert "sft (0.003)" in shown
    line = next(line for line in shown.splitlines() if "CLaaS: compliance " in line)
    assert line.count("100.0 (100.0)") == 2


def test_a_rule_without_a_value_has_a_dash(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a real model what was never adopted has no share that was held, or turned round."""
    drawn: list[Any] = []
    monkeypatch.setattr(picture, "bars", lambda rows, series: drawn.append((rows, series)) or b"")
    kept, lost = ([figure("adopted", {"weights": [1.0]}), figure("held", {"weights": held})] for held in ([], [0.5]))
    compare.drawn([Outcome("a", None, {}, kept), Outcome("b", None, {}, lost)])
    assert drawn == [(["adopted", "held"], {"a": [1.0, None], "b": [1.0, 0.5]})]


def test_a_picture_takes_what_has_no_value() -> None:
    """Beside bars that have one."""
    assert picture.bars(["adopted", "held"], {"a": [1.0, None], "b": [1.0, 0.5]}).startswith(b"\x89PNG")


async def test_an_interrupted_comparison_goes_on_at_the_next_measurement(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A rule's measurements are read back as they were written."""
    started: list[float | None] = []
    breaks = True

    @asynccontextmanager
    async def own(settings: dict[str, str]) -> AsyncIterator[str]:
        started.append(json.loads(settings["HEED_LEARN"]).get("learning_rate"))
        if breaks and len(started) == 3:
            raise StartFailed("it broke")
        async with serving(FakeHeed()) as url:
            yield url

    monkeypatch.setattr(server, "own", own)
    config = CompareConfig(**SMALL, rules=("heed", "sft"), out=str(tmp_path))
    with pytest.raises(StartFailed):
        await compare.run_compare(config, Console(width=150))
    breaks = False
    assert await compare.run_compare(config, Console(width=150)) == 0
    assert started == [None, 1e-3, 3e-3, 3e-3, 1e-2, 3e-2, 1e-3]
    written = json.loads((tmp_path / "compare.json").read_text())["rules"]
    assert written["heed"]["figures"] == written["sft"]["figures"]
    assert "Learning rules side by side" in (tmp_path / "compare.html").read_text()


async def test_a_real_model_is_compared_over_the_real_wishes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One heed per rate, each with the model and the rule; the rate that adopts most is measured with everything."""
    started: list[tuple[str, float | None, int | None]] = []

    @asynccontextmanager
    async def own(settings: dict[str, str], folder: Path) -> AsyncIterator[str]:
        learn = json.loads(settings["HEED_LEARN"])
        started.append((settings["HEED_MODEL"], learn.get("learning_rate"), learn.get("steps")))
        heed = BriefHeed(learns=learn.get("learning_rate") in (None, 1e-2))
        async with TestServer(heed.application()) as served:
            yield str(served.make_url("")).rstrip("/")

    monkeypatch.setattr(server, "own", own)
    config = CompareConfig(
        rules=("heed", "claas"), model="smollm2", wishes=("shorter",), seeds=1, probes=2, out=str(tmp_path)
    )
    assert await compare.run_compare(config, Console(width=150)) == 0
    assert started == [("smollm2", None, None), *(("smollm2", rate, 4) for rate in (*RULES["claas"].real_rates, 1e-2))]
    written = json.loads((tmp_path / "compare.json").read_text())
    assert written["model"] == "smollm2"
    assert written["rules"]["claas"]["rate"] == 1e-2
    medians = {row["name"]: row["median"] for row in written["rules"]["heed"]["figures"]}
    assert medians["adoption: ratio, mean"] == {"weights": 1.0}
    assert medians["closed questions lost"] == {"weights": 0.0}
    assert {"CLaaS: margin won", "CLaaS: compliance, identity", "CLaaS: capability ratio", "CLaaS: entropy ratio",
            "CLaaS: self-ROUGE-L"} <= set(medians)  # fmt: skip
