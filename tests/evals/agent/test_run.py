"""The command `heed eval agent`: its arguments, its files, and the rate of another system's rule."""

import json
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from engine.pocket.workshop import tasks
from engine.pocket.workshop.tasks import Task
from evals.agent import run, study
from evals.agent.run import AgentConfig, RuleRun, run_agent
from evals.errors import ArgumentError
from evals.rules import RULES
from tests.evals.agent.planner import PlanningClient

pytestmark = pytest.mark.usefixtures("can_run")


@pytest.mark.parametrize("wrong", [{"only": ("x",)}, {"rules": ("x",)}, {"seeds": 0}, {"tasks": 0}, {"parallel": 99}])
def test_an_argument_that_makes_no_sense_is_named(wrong: dict[str, Any]) -> None:
    """Before anything starts."""
    with pytest.raises(ArgumentError, match=next(iter(wrong))):
        AgentConfig(**wrong)


def test_a_rule_has_its_settings() -> None:
    """heed's gates are as shipped, every other's are open."""
    heed, other = RuleRun("heed", None, is_whole=True), RuleRun("continualcode", 0.1, is_whole=False)
    assert "HEED_GATE" not in heed.settings("pocket")
    assert json.loads(other.settings("pocket")["HEED_LEARN"])["learning_rate"] == 0.1
    assert (heed.label, other.label) == ("heed/whole", "continualcode/0.1")


async def test_a_result_holds_both_rules(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The other's at the rate at which most later tasks obey."""
    rates: list[float] = []

    @asynccontextmanager
    async def own(settings: dict[str, str]) -> AsyncIterator[str]:
        rates.append(json.loads(settings["HEED_LEARN"]).get("learning_rate"))
        yield ""

    @asynccontextmanager
    async def client(_config: AgentConfig, _url: str) -> AsyncIterator[PlanningClient]:
        heed = PlanningClient(is_learning=rates[-1] in (None, RULES["continualcode"].rates[1]))

        def drawn(form: str, label: str) -> Task:
            return heed.knows(tasks.drawn(form, random.Random(label), is_held_out=True))

        monkeypatch.setattr(study, "held_out", drawn)
        yield heed

    monkeypatch.setattr(run.server, "own", own)
    monkeypatch.setattr(study, "NAMES", ("reads",))
    monkeypatch.setattr(run, "_client", client)
    monkeypatch.setattr(run, "SWEEP_TASKS", 1)
    config = AgentConfig(seeds=1, tasks=1, only=("correction",), out=str(tmp_path), check=True)
    console = Console(width=150, record=True)
    assert await run_agent(config, console) == 0
    found = json.loads((tmp_path / "agent.json").read_text())
    assert found["rates"]["continualcode"] == RULES["continualcode"].rates[1]
    assert (tmp_path / "agent.png").stat().st_size > 1000
    assert "continualcode (0.03)" in console.export_text()
    assert len(rates) == 2 + len(RULES["continualcode"].rates)
