"""The command `heed eval real`: its arguments, its files, and going on."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from aiohttp.test_utils import TestServer
from rich.console import Console

from evals.errors import ArgumentError
from evals.journal import Journal
from evals.real.run import PARTS, RealConfig, measure, records_of, run_real, steps_of, units, wishes_table
from tests.evals.brief_heed import BriefHeed

SMALL: dict[str, Any] = {"wishes": ("shorter", "longer"), "prompts": 2, "seeds": 1}


@pytest.mark.parametrize(
    "wrong",
    [{"only": ("x",)}, {"wishes": ()}, {"split": "train"}, {"seeds": 0}, {"first": -1}, {"prompts": 19},
     {"training": "[1]"}, {"training": '{"stepz": 1}'}],
)  # fmt: skip
def test_an_argument_that_makes_no_sense_is_named(wrong: dict[str, object]) -> None:
    """Before anything starts."""
    with pytest.raises(ArgumentError, match=next(iter(wrong))):
        RealConfig(**wrong)  # type: ignore[arg-type]


@pytest.mark.parametrize("only", [(part,) for part in PARTS] + [PARTS])
async def test_the_bar_ends_full(only: tuple[str, ...]) -> None:
    """Each part alone, and all of them."""
    config, steps = RealConfig(**SMALL | {"seeds": 2}, only=only), list[str]()
    async with TestServer(BriefHeed().application()) as server:
        await measure(config, str(server.make_url("")), Journal(), steps.append)
    assert len(steps) == units(config)


async def test_later_seeds_go_on_where_an_earlier_run_ended() -> None:
    """They have other numbers and other words, and each kind of remark is still heard once."""
    asked = []
    for first in (0, 2):
        journal = Journal()
        config = RealConfig(**SMALL | {"seeds": 2}, first=first, only=("adoption", "remarks"))
        async with TestServer(BriefHeed().application()) as server:
            await measure(config, str(server.make_url("")), journal, lambda _: None)
        assert {record["seed"] for record in journal.records if "seed" in record} == {first, first + 1}
        asked.append(len(journal.records))
    assert asked[0] == asked[1]


async def test_a_result_holds_every_target_and_how_it_was_made(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """What was not measured is neither met nor missed; parts of two runs are told together."""
    heed = BriefHeed()
    async with TestServer(heed.application()) as server:
        url = str(server.make_url("")).rstrip("/")
        first, second = str(tmp_path / "one"), str(tmp_path / "two")
        for out, part, also in ((first, "adoption", ()), (second, "remarks", (first,))):
            await asyncio.to_thread(Path(out).mkdir)
            config = RealConfig(**SMALL, only=(part,), url=url, out=out, also=also)
            assert await run_real(config, Console(width=150)) == 0
    found = json.loads((tmp_path / "two" / "real.json").read_text())
    rows = {row["name"]: row for row in found["targets"]}
    assert len(rows) == 16
    assert rows["adoption ratio, worst wish"]["is_met"] is True
    assert rows["other answers changed by remarks"]["value"] == 0.0
    assert rows["facts made up"] | {"target": 0} == {
        "name": "facts made up", "value": None, "target": 0, "is_at_least": False, "is_met": None,
    }  # fmt: skip
    assert {"commit", "weights_sha256", "config", "machine", "settings"} <= set(found)
    assert "adoption ratio, worst wish" in capsys.readouterr().out


def test_a_folder_without_a_run_is_named(tmp_path: Path) -> None:
    """Before anything is measured."""
    with pytest.raises(ArgumentError, match="also names"):
        steps_of(tmp_path)


def test_a_run_that_goes_on_is_no_result(tmp_path: Path) -> None:
    """Its records count once it has ended."""
    steps = tmp_path / "real.jsonl"
    steps.write_text('{"run": {}}\n')
    assert steps_of(tmp_path) == steps
    with pytest.raises(ArgumentError, match="has not ended"):
        records_of(steps)
    steps.write_text('{"run": {}}\n{"end": true}\n')
    assert len(records_of(steps)) == 2


def test_the_table_tells_what_the_model_can_follow_apart_from_what_it_learned() -> None:
    """A ceiling has no ratio of its own."""
    rows = [
        {"part": "ceiling", "wish": "shorter", "base": 0.0, "note": 0.75, "weights": None, "both": None, "ratio": None},
        {"part": "ceiling", "wish": "emoji", "base": 0.0, "note": 0.25, "weights": None, "both": None, "ratio": None},
        {"part": "adoption", "wish": "shorter", "base": 0.0, "note": 0.75, "weights": 0.6, "both": 0.8, "ratio": 0.8},
        {"part": "retention", "wish": "emoji", "base": 0.0, "note": 0.25, "weights": 0.1, "both": None, "ratio": None},
    ]
    *_, told = wishes_table({"wishes": rows}).columns
    assert list(told.cells) == ["the model can", "the model itself cannot", "0.80", "the model itself cannot"]
