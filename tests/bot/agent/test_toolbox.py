"""bot.agent.toolbox: calls of tools, in the sandbox, and what a person is shown before they run."""

import json
from dataclasses import asdict
from pathlib import Path

import pytest

from bot.agent import toolbox
from bot.agent.inside.result import TOO_LARGE, ToolResult, cut
from bot.agent.sandbox import Bounds, Finished, Sandbox
from bot.agent.toolbox import Toolbox
from bot.agent.tools import Call, read_call
from tests.bot.agent.workspaces import USER, put


@pytest.fixture
def tools(sandbox: Sandbox) -> Toolbox:
    """The toolbox of the workspace."""
    return Toolbox(sandbox)


async def test_a_file_is_written_read_and_changed(tools: Toolbox, folder: Path) -> None:
    """Each call in the sandbox; the preview shows the diff and changes nothing."""
    write = read_call("write", '{"path": "src/a.py", "content": "x = 1\\ny = 2\\n"}')
    shown = await tools.preview(write)
    assert shown.output == "--- /dev/null\n+++ b/src/a.py\n@@ -0,0 +1,2 @@\n+x = 1\n+y = 2\n"
    assert not (folder / "src").exists()
    assert (await tools.run(write)).success
    assert (await tools.run(read_call("read", '{"path": "src/a.py"}'))).output == "     1\tx = 1\n     2\ty = 2\n"
    edit = read_call("edit", '{"path": "src/a.py", "old": "y = 2", "new": "y = 3"}')
    assert "-y = 2\n+y = 3\n" in (await tools.preview(edit)).output
    assert (await tools.run(edit)).output == (await tools.preview(write)).output.replace(
        "-y = 3\n+y = 2", "-y = 2\n+y = 3"
    )
    lines = read_call("edit_lines", '{"path": "src/a.py", "start": 3, "end": 3, "content": "z = 4"}')
    assert (await tools.run(lines)).success
    assert (folder / "src" / "a.py").read_text() == "x = 1\ny = 3\nz = 4\n"


async def test_what_is_asked_for_is_found(tools: Toolbox, folder: Path) -> None:
    """By name and by text."""
    put(folder, "a.py", "import os\n")
    put(folder, "b/c.py", "import sys\n")
    assert {*(await tools.run(read_call("glob", '{"pattern": "**/*.py"}'))).output.split()} == {"a.py", "b/c.py"}
    found = await tools.run(read_call("grep", '{"pattern": "import s"}'))
    assert found.output == "b/c.py:1:import sys"


async def test_a_command_says_how_it_ended(tools: Toolbox, sandbox: Sandbox) -> None:
    """Its output without colours; the middle of a long one is cut."""
    done = await tools.run(read_call("bash", '{"command": "printf \'\\\\033[31mred\\\\033[0m\'"}'))
    assert (done.output, done.success, done.feedback) == ("red", True, "")
    silent = await tools.run(read_call("bash", '{"command": "true"}'))
    assert silent.output == "(no output)"
    failed = await tools.run(read_call("bash", '{"command": "echo no; exit 4"}'))
    assert (failed.output, failed.success, failed.feedback) == ("no\n", False, "It ended with status 4.")
    long = await tools.run(read_call("bash", '{"command": "seq 100000"}'))
    assert long.output.startswith("1\n2\n")
    assert long.output.endswith("99999\n100000\n")
    assert len(long.output) < 17_000
    late = await Toolbox(Sandbox(sandbox.folder, USER, Bounds(seconds=1))).run(
        read_call("bash", '{"command": "sleep 9"}')
    )
    assert (late.success, late.feedback) == (False, "The tool was ended: it took longer than 1 s.")


async def test_a_failure_tells_what_to_do(tools: Toolbox) -> None:
    """No exception: the model reads it."""
    found = await tools.run(read_call("read", '{"path": "none.txt"}'))
    assert (found.success, found.output) == (False, "none.txt cannot be read: No such file or directory.")
    assert found.feedback


@pytest.mark.parametrize("name", ["/etc/passwd", "../x", "a/../../x", "~/x", "link", "dir/x", "", "a\\u0000b"])
@pytest.mark.parametrize("tool", ["read", "write", "edit", "edit_lines"])
async def test_no_path_leads_out(tools: Toolbox, folder: Path, tmp_path: Path, tool: str, name: str) -> None:
    """Neither absolute, nor by dots, nor by a link; nothing is written there."""
    (folder / "link").symlink_to(tmp_path / "x")
    (folder / "dir").symlink_to(tmp_path)
    more = {"read": "", "write": ', "content": "x"', "edit": ', "old": "a", "new": "b"'}
    rest = more.get(tool, ', "start": 1, "end": 1, "content": "x"')
    call = read_call(tool, f'{{"path": "{name}"{rest}}}')
    for found in (await tools.preview(call), await tools.run(call)) if tool != "read" else (await tools.run(call),):
        assert (found.success, bool(found.feedback)) == (False, True)
    assert not (tmp_path / "x").exists()


async def test_a_person_sees_what_a_diff_hides(tools: Toolbox) -> None:
    """Sequences for the terminal and marks of direction stand by their numbers, before the call and after it."""
    call = read_call("write", '{"path": "a", "content": "ls\\u001b[2K\\u202etxt"}')
    assert "+ls<U+001B>[2K<U+202E>txt\n" in (await tools.preview(call)).output
    assert "+ls<U+001B>[2K<U+202E>txt\n" in (await tools.run(call)).output
    command = await tools.preview(read_call("bash", '{"command": "ls\\u001b[1A\\r"}'))
    assert command.output == "command: ls<U+001B>[1A<U+000D>"


def test_a_tool_that_is_ended_or_says_nothing() -> None:
    """The model is told, and may ask for less."""
    ended = toolbox.ended(Finished("", None, "it used more than 64 MiB of memory"))
    assert (ended.success, ended.output) == (False, "The tool was ended: it used more than 64 MiB of memory.")
    assert toolbox.ended(Finished("Traceback", 1)).output == toolbox.BROKEN


def test_a_failure_that_is_about_gits_own_files_says_why() -> None:
    """One that is about others does not, nor does a success."""
    failed = toolbox.told(Finished("bash: .git/config: Read-only file system", 1))
    assert toolbox.with_reason(failed).feedback == f"It ended with status 1. {toolbox.OF_GIT}"
    for other in (Finished("bash: a: Read-only file system", 1), Finished(".git", 0)):
        assert toolbox.with_reason(toolbox.told(other)) == toolbox.told(other)


@pytest.mark.parametrize("printed", ["/heed.zip: FutureWarning: set\n{}", "[]", "3", '{"output": "a", "more": 1}'])
async def test_an_answer_that_cannot_be_read_is_a_failure(
    folder: Path, monkeypatch: pytest.MonkeyPatch, printed: str
) -> None:
    """No exception: the call is told as one that failed."""
    answered_by(monkeypatch, printed)
    result = await Toolbox(Sandbox(folder, USER)).run(Call("glob", {"pattern": "*"}))
    assert (result.success, result.output) == (False, toolbox.BROKEN)


async def test_what_is_made_visible_is_no_longer_than_other_output(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A mark of direction takes eight characters; what was cut already has one line in its middle."""
    answered_by(monkeypatch, json.dumps(asdict(ToolResult("\u202e" * 7000, feedback="\u202e" * 4000))))
    result = await Toolbox(Sandbox(folder, USER)).run(Call("glob", {"pattern": "*"}))
    assert len(result.output) < 7200
    assert len(result.feedback) < 1100
    answered_by(monkeypatch, json.dumps(asdict(ToolResult(cut("x" * 20_000)))))
    again = await Toolbox(Sandbox(folder, USER)).run(Call("glob", {"pattern": "*"}))
    assert again.output == cut("x" * 20_000)


async def test_a_preview_has_no_middle_left_out(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One that is too large once all of it is visible is a failure that says so."""
    call = Call("write", {"path": "a", "content": "x"})
    answered_by(monkeypatch, json.dumps(asdict(ToolResult("x" * 100_000))))
    assert (await Toolbox(Sandbox(folder, USER)).preview(call)).output == "x" * 100_000
    answered_by(monkeypatch, json.dumps(asdict(ToolResult("\u202e" * 100_000))))
    assert await Toolbox(Sandbox(folder, USER)).preview(call) == TOO_LARGE


def answered_by(monkeypatch: pytest.MonkeyPatch, printed: str) -> None:
    """Let the program in the sandbox print this."""

    async def ask(*_arguments: object, **_options: object) -> Finished:
        return Finished(printed, 0)

    monkeypatch.setattr("bot.agent.program.ask", ask)
