"""bot.agent.program: the program of the tools, as it is handed into a sandbox."""

import io
import json
import zipfile
from pathlib import Path

import pytest

from bot.agent import program
from bot.agent.guard import Guard
from bot.agent.inside.result import MOST_PREVIEW_CHARS
from bot.agent.program import NO_PYTHON
from bot.agent.sandbox import Sandbox
from bot.errors import SandboxUnavailable
from tests.bot.agent.workspaces import put


async def test_a_call_is_asked_and_answered(sandbox: Sandbox, folder: Path) -> None:
    """As JSON, in the sandbox."""
    put(folder, "a.txt", "one\n")
    found = await program.ask(sandbox, "glob", {"pattern": "*"}, Guard())
    assert (found.status, json.loads(found.output)["output"]) == (0, "a.txt")


async def test_a_warning_does_not_stand_in_the_answer(sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    """Such as that of Python about a regular expression: standard error is read together with the answer."""
    warned = f"import warnings\nwarnings.warn('odd', FutureWarning)\n{program._START}"
    monkeypatch.setattr(program, "_START", warned)
    program.program.cache_clear()
    try:
        found = await program.ask(sandbox, "glob", {"pattern": "*"}, Guard())
    finally:
        program.program.cache_clear()
    assert json.loads(found.output)["success"]


async def test_an_answer_has_room_for_the_largest_preview(sandbox: Sandbox) -> None:
    """Also where every character takes its longest form in JSON."""
    text = "\U0001f41d" * (MOST_PREVIEW_CHARS - 1000)
    found = await program.ask(sandbox, "write", {"path": "a", "content": text}, Guard(), is_preview=True)
    assert text in json.loads(found.output)["output"]


def test_it_holds_what_runs_inside_and_nothing_else() -> None:
    """No other module of heed's."""
    with zipfile.ZipFile(io.BytesIO(program.program())) as archive:
        named = set(archive.namelist())
    assert {"__main__.py", "bot/__init__.py", "bot/agent/__init__.py", "bot/agent/inside/git.py"} <= named
    assert all(name.count("/") < 3 or name.startswith("bot/agent/inside/") for name in named)


async def test_without_a_python_the_package_is_named(sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    """Before anything is started."""
    program.python.cache_clear()
    monkeypatch.setattr(program, "PYTHONS", ("/no/python",))
    with pytest.raises(SandboxUnavailable, match=NO_PYTHON[:12]):
        await program.ask(sandbox, "glob", {"pattern": "*"}, Guard())
    program.python.cache_clear()
