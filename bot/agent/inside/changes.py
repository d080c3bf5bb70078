"""The tools that change a file: write, edit and edit_lines, each as what stands before and after.

Pure but for reading: `bot.agent.inside.main` shows a change as a diff, or makes it. Invariant: what is found more than
once, or not at all, changes nothing.
"""

import difflib
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bot.agent.inside import conflicts, paths, texts
from bot.agent.inside.result import ToolFailed, ToolResult

NUMBERED = re.compile(r"^ *\d+\t", re.MULTILINE)  # as `read` shows lines
CONTEXT_LINES = 3
NEAR = 0.6  # likeness from which a line may be the one that was meant


@dataclass(frozen=True)
class FileChange:
    """A file of the workspace, its text before (None if there is none) and after."""

    path: Path
    name: str
    before: str | None
    after: str

    @property
    def diff(self) -> str:
        """The change as a unified diff; empty if nothing changes."""
        old, new = (self.before or "").splitlines(keepends=True), self.after.splitlines(keepends=True)
        origin = f"a/{self.name}" if self.before is not None else "/dev/null"
        lines = difflib.unified_diff(old, new, origin, f"b/{self.name}", n=CONTEXT_LINES)
        return "".join(line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines)

    @property
    def conflicts(self) -> str:
        """A sentence about git's conflicts in the file; empty if there are none."""
        return conflicts.about_change(self.name, self.before or "", self.after)

    @property
    def preview(self) -> ToolResult:
        """The diff as the person is shown it, with a line before it about conflicts."""
        return ToolResult(f"{self.conflicts}\n{self.diff}" if self.conflicts else self.diff)

    def make(self, root: Path) -> ToolResult:
        """Write the file."""
        texts.write(root, self.path, self.after)
        return ToolResult(self.diff or f"{self.name} is as it was.", feedback=self.conflicts)


def write(root: Path, arguments: dict[str, Any]) -> FileChange:
    """Return the change to a whole new text."""
    path = paths.changeable(root, arguments["path"])
    before = texts.read(root, path) if path.exists() else None
    return FileChange(path, paths.named(root, path), before, arguments["content"])


def edit(root: Path, arguments: dict[str, Any]) -> FileChange:
    """Return the change of one passage, or with `all` of every such passage. Raises ToolFailed."""
    path = paths.changeable(root, arguments["path"])
    before, name = texts.read(root, path), paths.named(root, path)
    old, new = as_in(before, arguments["old"], arguments["new"])
    if not old:
        raise ToolFailed("What is to be replaced is empty.", "Use write for a whole file, edit_lines to add lines.")
    count = before.count(old)
    if not count:
        raise ToolFailed(f"That is not in {name}.", _near(before, old))
    if count > 1 and not arguments["all"]:
        more = "Take in more of the lines around it, or set all."
        raise ToolFailed(f"That is in {name} {count} times.", more)
    return FileChange(path, name, before, before.replace(old, new))


def edit_lines(root: Path, arguments: dict[str, Any]) -> FileChange:
    """Return the change of lines `start` to `end`, both counted from 1 and included; one past the last adds lines."""
    path = paths.changeable(root, arguments["path"])
    before, name = texts.read(root, path), paths.named(root, path)
    lines = before.splitlines(keepends=True)
    start, end = arguments["start"], arguments["end"]
    is_added = start == len(lines) + 1 and end in (start - 1, start)
    if not is_added and not 1 <= start <= end <= len(lines):
        said = f"{name} has {len(lines)} lines, and {start} to {end} are no part of them."
        raise ToolFailed(said, f"Read it again; {len(lines) + 1} to {len(lines) + 1} adds lines at its end.")
    content = without_numbers(arguments["content"])
    if content and not content.endswith("\n"):
        content += "\n"
    kept = lines[: start - 1]
    if is_added and kept and not kept[-1].endswith("\n"):
        kept[-1] += "\n"
    return FileChange(path, name, before, "".join([*kept, content, *lines[end:]]))


def as_in(text: str, old: str, new: str) -> tuple[str, str]:
    """Return both passages without the line numbers of `read`, where they were copied with them."""
    if old not in text and NUMBERED.match(old):
        return without_numbers(old), without_numbers(new)
    return old, new


def without_numbers(passage: str) -> str:
    """Return lines without their numbers, if every one of them has one."""
    lines = passage.splitlines(keepends=True)
    is_numbered = bool(lines) and all(NUMBERED.match(line) for line in lines)
    return NUMBERED.sub("", passage) if is_numbered else passage


def _near(text: str, old: str) -> str:
    """Name the line that is most like the first of a passage."""
    wanted = next((line for line in old.splitlines() if line.strip()), "")
    rated = [
        (difflib.SequenceMatcher(None, line.strip(), wanted.strip()).ratio(), number, line)
        for number, line in enumerate(text.splitlines()[:5000], 1)
    ]
    likeness, number, line = max(rated, default=(0.0, 0, ""))
    if likeness < NEAR:
        return "Read the file again, and copy what is to be replaced."
    return f"Line {number} is near: {line.strip()[:200]!r}. Copy it as it stands, blanks included."
