"""`heed agent` is killed at any moment: no call has run twice, no process of one is left, and heed goes on."""

import asyncio
import json
import random
import sys
from asyncio.subprocess import DEVNULL, PIPE
from pathlib import Path

import psutil

from bot.cli.client import HeedClient
from tests.bot.agent.minds import piece
from tests.bot.agent.workspaces import USER
from tests.bot.conftest import Heed
from tests.patience import until

ROOT = Path(__file__).resolve().parents[4]
KILLS = 20
COMMAND = "echo ran >> {0}; sleep 0.1; echo done >> {0}; sleep 4718"


async def begun(client: HeedClient, folder: Path) -> asyncio.subprocess.Process:
    """Start the command; a person asks for something and says yes."""
    options = ("--user", "ana", "--url", client.url, "--json", *(("--account", USER) if USER else ()))
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "bot", "agent", str(folder), *options, cwd=ROOT, stdin=PIPE, stdout=PIPE, stderr=DEVNULL
    )
    assert process.stdin is not None
    process.stdin.write(b"go\n1\n")
    return process


async def seen(process: asyncio.subprocess.Process, event: str) -> None:
    """Return once the command has told of an event."""
    assert process.stdout is not None
    while line := await process.stdout.readline():
        if json.loads(line)["event"] == event:
            return


async def test_a_kill_leaves_nothing_behind(heed: Heed, client: HeedClient, folder: Path, can_run: None) -> None:
    """Before the question, at it, while the tool begins, and while it runs."""
    rng = random.Random(0)
    for number in range(KILLS):
        heed.engine.calls = [piece("bash", json.dumps({"command": COMMAND.format(f"log{number}")}))]
        process = await begun(client, folder)
        moment = ("", "call", "question", "log")[number % 4]
        if moment == "log":
            await until(lambda: logs_in(folder, f"log{number}"))  # noqa: B023
        elif moment:
            await seen(process, moment)
        await asyncio.sleep(rng.uniform(0, 0.4))
        process.kill()
        await process.wait()
        await until(lambda: not running())
    logs = logs_in(folder)
    assert all(log.count("ran") == 1 for log in logs)
    assert 0 < len(logs) < KILLS  # some kills came while it ran, and some before
    assert (await client.get())["account"]


def logs_in(folder: Path, name: str = "log*") -> list[str]:
    """What the commands have written, each in a file of its own, which is empty if a kill came just then."""
    return [text for log in folder.glob(name) if (text := log.read_text())]


def running() -> bool:
    """Whether a process of the tool's runs."""
    found = (process.info["cmdline"] or [""] for process in psutil.process_iter(["cmdline"]))
    return any(words[-1] == "4718" or "sleep 4718" in words[-1] for words in found)
