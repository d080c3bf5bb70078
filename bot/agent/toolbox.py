"""The toolbox of one workspace: runs a call in its sandbox, or shows what it would change.

Invariant: every tool, also one that only reads, runs in the sandbox: a link in a workspace leads nowhere else.
"""

import io
import json
import zipfile
from dataclasses import replace
from functools import cache
from importlib.resources import files
from pathlib import Path

from bot.agent import inside
from bot.agent.inside.result import ToolResult, cut
from bot.agent.sandbox import WORK, Finished, Sandbox
from bot.agent.tools import CHANGING, Call
from bot.agent.visible import printed, visible
from bot.errors import SandboxUnavailable

PYTHONS = ("/usr/bin/python3", "/usr/local/bin/python3")  # that a sandbox may have: any will do
SHOWN_AT = "/heed.zip"  # where it sees the program that runs the tools
NO_PYTHON = "there is no /usr/bin/python3: apt install python3"
_START = f"from pathlib import Path\nfrom bot.agent.inside.main import main\nmain(Path({WORK!r}))\n"
ENDED = "The tool was ended: {}."
BROKEN = "The tool answered nothing that can be read."
TRY_LESS = "Ask for less at a time."


class Toolbox:
    """Runs the calls of one workspace."""

    def __init__(self, sandbox: Sandbox) -> None:
        self.sandbox = sandbox

    @property
    def folder(self) -> Path:
        """The workspace."""
        return self.sandbox.folder

    async def run(self, call: Call) -> ToolResult:
        """Do what a call asks. Raises SandboxUnavailable."""
        if call.tool == "bash":
            return told(await self.sandbox.run(["bash", "-c", call.arguments["command"]]))
        return await self._in_program(call, is_preview=False)

    async def preview(self, call: Call) -> ToolResult:
        """Return what a call would change, as a diff; what it is about if it changes no file. Changes nothing."""
        if call.tool in CHANGING:
            return await self._in_program(call, is_preview=True)
        words = (f"{name}: {value}" for name, value in call.arguments.items() if value != "")
        return ToolResult(visible("\n".join(words)))

    async def _in_program(self, call: Call, *, is_preview: bool) -> ToolResult:
        asked = {"tool": call.tool, "arguments": call.arguments, "is_preview": is_preview}
        found = await self.sandbox.run([python(), "-I", SHOWN_AT], json.dumps(asked).encode(), {SHOWN_AT: program()})
        if found.status != 0:
            return ended(found)
        answered = ToolResult(**json.loads(found.output))
        return replace(answered, output=visible(answered.output))


@cache
def program() -> bytes:
    """Return the program that runs the tools, as a zip file that Python starts."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("__main__.py", _START)
        for package in ("bot", "bot/agent"):
            archive.writestr(f"{package}/__init__.py", "")
        for source in files(inside).iterdir():
            if source.name.endswith(".py"):
                archive.writestr(f"bot/agent/inside/{source.name}", source.read_bytes())
    return packed.getvalue()


@cache
def python() -> str:
    """Return the interpreter that a sandbox sees. Raises SandboxUnavailable."""
    found = next((path for path in PYTHONS if Path(path).exists()), None)
    if found is None:
        raise SandboxUnavailable(NO_PYTHON)
    return found


def told(found: Finished) -> ToolResult:
    """Return what a command printed, and how it ended if that was no success."""
    output = cut(printed(found.output))
    if found.status == 0:
        return ToolResult(output or "(no output)")
    if found.status is None:
        return ToolResult(output, success=False, feedback=ENDED.format(found.ended_by))
    return ToolResult(output, success=False, feedback=f"It ended with status {found.status}.")


def ended(found: Finished) -> ToolResult:
    """Return that a tool's own program did not answer."""
    said = ENDED.format(found.ended_by) if found.status is None else BROKEN
    return ToolResult(said, success=False, feedback=TRY_LESS)
