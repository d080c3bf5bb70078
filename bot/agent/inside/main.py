"""The program inside the sandbox: reads one call of a tool as JSON and answers it as JSON, on standard streams.

Runs in the sandbox, where /work is all there is to write in. Invariant: one object is answered in any case.
"""

import json
import sys
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from bot.agent.inside import changes, git, search
from bot.agent.inside.changes import FileChange
from bot.agent.inside.result import ToolFailed, ToolResult, cut, whole
from bot.agent.inside.visible import visible

Arguments = dict[str, Any]
LOOKING: dict[str, Callable[[Path, Arguments], ToolResult]] = {
    "read": search.read, "glob": search.glob, "grep": search.grep,
}  # fmt: skip
CHANGED = "A file has changed since this was shown, so it would do something else by now. Nothing was done."
ASIDE: dict[str, Callable[[Path, Arguments], ToolResult]] = {
    "git_state": git.state,
    "git_settings": git.settings,
}  # fmt: skip  that heed asks for itself
CHANGING: dict[str, Callable[[Path, Arguments], FileChange]] = {
    "write": changes.write, "edit": changes.edit, "edit_lines": changes.edit_lines,
}  # fmt: skip


def main(root: Path) -> None:
    """Answer the call."""
    call = json.load(sys.stdin)
    is_preview, shown = call["is_preview"], call["shown"]
    result = run(root.resolve(), call["tool"], call["arguments"], is_preview=is_preview, shown=shown)
    bounded = whole(result) if is_preview else replace(result, output=cut(result.output))
    json.dump(asdict(bounded), sys.stdout)


def run(root: Path, tool: str, arguments: Arguments, *, is_preview: bool, shown: str | None = None) -> ToolResult:
    """Do what a call asks, or as a preview only say what would change.

    Where the person was `shown` a change, another one is not made in its place.
    """
    try:
        if tool not in CHANGING:
            return (LOOKING | ASIDE)[tool](root, arguments)
        change = CHANGING[tool](root, arguments)
        if is_preview:
            return change.preview
        if shown not in (None, visible(whole(change.preview).output)):
            return ToolResult(CHANGED, success=False, feedback="Read the file again.")
        return change.make(root)
    except ToolFailed as failed:
        return failed.result
    except OSError as error:  # a folder that was deleted meanwhile
        return ToolResult(f"{tool} failed: {error.strerror}.", success=False, feedback="Use glob to see what there is.")
