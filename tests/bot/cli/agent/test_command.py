"""bot.cli.agent.command: `heed agent` as a program, against a running heed."""

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

import pytest

from bot.agent.sandbox import AS_ROOT
from bot.cli.agent.command import _require_apart
from bot.cli.client import HeedClient
from bot.errors import SandboxUnavailable
from storage.files.lock import LOCK_NAME
from tests.bot.agent.minds import piece
from tests.bot.agent.repositories import make_repository
from tests.bot.agent.workspaces import USER
from tests.bot.conftest import Heed
from tests.patience import PATIENCE_S

ROOT = Path(__file__).resolve().parents[4]


async def heed_agent(*words: str, lines: str = "") -> tuple[int | None, str]:
    """Run the command in this checkout; its exit code and everything it printed."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "bot", "agent", *words, cwd=ROOT,
        stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT,
    )  # fmt: skip
    async with asyncio.timeout(PATIENCE_S):
        output, _ = await process.communicate(lines.encode())
    return process.returncode, output.decode()


def events(output: str) -> list[dict[str, Any]]:
    """What the command told a program."""
    return [json.loads(line) for line in output.splitlines() if line.startswith("{")]


async def test_a_script_works_in_a_folder(heed: Heed, client: HeedClient, folder: Path, can_run: None) -> None:
    """It says no with a word, heed learns that for this person, and the call that it allows then is run.

    The first line names the folder's repository.
    """
    make_repository(folder)
    heed.engine.calls = [piece("write", json.dumps({"path": "a.txt", "content": "one\\n"}))]
    options = ("--user", "ana", "--url", client.url, "--json", "--yes-read", *(("--account", USER) if USER else ()))
    code, output = await heed_agent(str(folder), *options, lines="write a.txt\n3\nnot yet\n1\n")
    assert code == 0, output
    assert f"in {folder} (main, nothing changed)." in events(output)[0]["text"]
    kinds = [event["event"] for event in events(output)]
    assert kinds[:5] == ["hint", "call", "question", "question", "lesson"], output
    assert kinds.count("result") == 1
    assert heed.engine.num_learned == 1
    assert (folder / "a.txt").exists()


async def test_without_an_account_of_its_own_nothing_is_started(folder: Path, can_run: None) -> None:
    """As root the command says what to do; a folder that is none is refused."""
    if USER:
        code, output = await heed_agent(str(folder))
        assert (code, AS_ROOT in " ".join(output.split())) == (2, True)
    code, output = await heed_agent(str(folder / "none"))
    assert (code, "does not exist" in output) == (2, True)


def test_a_folder_with_heeds_data_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also one within it, with the remedy; one whose `data` is not heed's is not."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HEED_DATA_DIR", "data")
    data = tmp_path / "data"
    (data / "workspaces").mkdir(parents=True)
    _require_apart(tmp_path)
    (data / LOCK_NAME).touch()
    for folder in (tmp_path, data, data / "workspaces"):
        with pytest.raises(SandboxUnavailable, match="HEED_DATA_DIR"):
            _require_apart(folder)
    (tmp_path / "site").mkdir()
    _require_apart(tmp_path / "site")
