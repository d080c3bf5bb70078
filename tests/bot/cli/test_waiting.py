"""bot.cli.waiting: a heed that starts is waited for, one that can answer is not."""

import asyncio
import io
from collections.abc import AsyncIterator

import pytest
from rich.console import Console

from bot.cli import waiting
from bot.cli.client import HeedClient
from bot.http.api import health
from tests.bot.conftest import Heed
from tests.patience import PATIENCE_S, until


@pytest.fixture
async def client(heed: Heed) -> AsyncIterator[HeedClient]:
    """A client of a running heed."""
    await heed.client.start_server()
    async with HeedClient(str(heed.client.make_url("/")), "ana") as client:
        yield client


async def test_a_part_that_is_down_keeps_no_one_waiting(client: HeedClient, monkeypatch: pytest.MonkeyPatch) -> None:
    """A nearly full disk is named, and the chat begins."""
    monkeypatch.setattr(health, "disk_state", lambda _: "low: 300 MiB free")
    console = Console(file=io.StringIO(), width=200)
    await asyncio.wait_for(waiting.until_it_answers(client, console), PATIENCE_S)
    assert isinstance(console.file, io.StringIO)
    assert console.file.getvalue() == "heed answers, but a part of it does not work. disk: low (300 MiB free).\n"


async def test_each_step_of_a_start_is_told_once(
    client: HeedClient, heed: Heed, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The steps come with the seconds so far, the same one once however often it is seen."""
    monkeypatch.setattr(waiting, "LOOK_AGAIN_S", 0.01)
    steps = {"model": "starting: loading the model into vLLM"}
    looks = 0

    def counted() -> dict[str, str]:
        nonlocal looks
        looks += 1
        return steps

    monkeypatch.setattr(heed.engine, "health", counted)
    heed.engine.is_ready = False
    file = io.StringIO()
    running = asyncio.create_task(waiting.until_it_answers(client, Console(file=file, width=200)))
    await until(lambda: looks >= 3)
    steps["model"] = "starting: warming up"
    await until(lambda: "warming up" in file.getvalue())
    steps["model"] = "ok"
    heed.engine.is_ready = True
    await asyncio.wait_for(running, PATIENCE_S)
    lines = [line.partition("] ")[2] for line in file.getvalue().splitlines()]
    assert lines == [
        "heed is starting. model: starting (loading the model into vLLM).",
        "heed is starting. model: starting (warming up).",
    ]
