"""The toolbox of one workspace: runs a call in its sandbox, or shows what it would change.

Invariant: every tool, also one that only reads, runs in the sandbox: a link in a workspace leads nowhere else.
"""

import json
from dataclasses import replace
from pathlib import Path

from bot.agent import program
from bot.agent.guard import Guard
from bot.agent.inside.paths import GIT
from bot.agent.inside.result import MOST_CHARS, ToolResult, cut, whole
from bot.agent.inside.visible import printed, visible
from bot.agent.repository import Repository
from bot.agent.sandbox import UNGUARDED, Finished, Sandbox
from bot.agent.tools import CHANGING, LOOKING, Call

ENDED = "The tool was ended: {}."
BROKEN = "The tool answered nothing that can be read."
MOST_VISIBLE_CHARS = MOST_CHARS + 100  # of an output: one that was cut is not cut again for the line in its middle
MOST_FEEDBACK_CHARS = 1000
TRY_LESS = "Ask for less at a time."
OF_GIT = "Hooks and settings of git are read-only here: they name programs that run outside of the sandbox later."


class Toolbox:
    """Runs the calls of one workspace."""

    def __init__(self, sandbox: Sandbox) -> None:
        self.sandbox = sandbox
        self.repository = Repository(sandbox)

    @property
    def folder(self) -> Path:
        """The workspace."""
        return self.sandbox.folder

    async def run(self, call: Call, shown: ToolResult | None = None) -> ToolResult:
        """Do what a call asks; a change only as it was `shown`, where it was. Raises SandboxUnavailable."""
        if call.tool in LOOKING:
            return await self._in_program(call)
        async with self.repository.guarded() as guard:
            if call.tool in CHANGING:
                return await self._in_program(call, guard, shown=shown.output if shown else None)
            found = await self.sandbox.run(["bash", "-c", call.arguments["command"]], guard=guard)
            return with_reason(told(found)) if guard.places else told(found)

    async def preview(self, call: Call) -> ToolResult:
        """Return what a call would change, as a diff; what it is about if it changes no file. Changes nothing."""
        if call.tool in CHANGING:
            return await self._in_program(call, is_preview=True)
        words = (f"{name}: {value}" for name, value in call.arguments.items() if value != "")
        return ToolResult(visible("\n".join(words)))

    async def _in_program(
        self, call: Call, guard: Guard = UNGUARDED, *, is_preview: bool = False, shown: str | None = None
    ) -> ToolResult:
        named = call.tool, call.arguments
        found = await program.ask(self.sandbox, *named, guard, is_preview=is_preview, shown=shown)
        if found.status != 0:
            return ended(found)
        try:
            answered = ToolResult(**json.loads(found.output))
        except (ValueError, TypeError):
            return ended(found)
        output, feedback = visible(answered.output), cut(visible(answered.feedback), MOST_FEEDBACK_CHARS)
        if is_preview:
            return whole(replace(answered, output=output, feedback=feedback))
        return replace(answered, output=cut(output, MOST_VISIBLE_CHARS), feedback=feedback)


def told(found: Finished) -> ToolResult:
    """Return what a command printed, and how it ended if that was no success."""
    output = cut(printed(found.output))
    if found.status == 0:
        return ToolResult(output or "(no output)")
    if found.status is None:
        return ToolResult(output, success=False, feedback=ENDED.format(found.ended_by))
    return ToolResult(output, success=False, feedback=f"It ended with status {found.status}.")


def with_reason(result: ToolResult) -> ToolResult:
    """Return the result of a command with why git's own files could not be changed, if it failed and names them."""
    is_about_git = not result.success and GIT in result.output
    return replace(result, feedback=f"{result.feedback} {OF_GIT}") if is_about_git else result


def ended(found: Finished) -> ToolResult:
    """Return that a tool's own program did not answer."""
    said = ENDED.format(found.ended_by) if found.status is None else BROKEN
    return ToolResult(said, success=False, feedback=TRY_LESS)
