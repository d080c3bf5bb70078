"""The tools that look: read, glob and grep."""

import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

from bot.agent.inside import conflicts, paths, texts
from bot.agent.inside.result import ToolFailed, ToolResult

MOST_LINES = 2000
MOST_HITS = 50
MOST_CHARS = 400  # of a line that is shown
IGNORED = "Only what .gitignore leaves out is called so ({}): bash lists it."


def read(root: Path, arguments: dict[str, Any]) -> ToolResult:
    """Return numbered lines of a file, from `offset` (1 is the first), `limit` at most."""
    path = paths.resolved(root, arguments["path"])
    text = texts.read(root, path)
    lines, name = text.splitlines(), paths.named(root, path)
    start, limit = arguments["offset"], min(arguments["limit"], MOST_LINES)
    shown = lines[start - 1 : start - 1 + limit]
    if not shown:
        return ToolResult(f"{name} has {len(lines)} lines.")
    found = "".join(f"{number:>6}\t{_cut(line)}\n" for number, line in enumerate(shown, start))
    rest = len(lines) - (start - 1) - len(shown)
    more = f"({rest} more lines)\n" if rest > 0 else ""
    return ToolResult(found + more, feedback=conflicts.about(name, text))


def glob(root: Path, arguments: dict[str, Any]) -> ToolResult:
    """Return files by a pattern, the newest first."""
    pattern = arguments["pattern"]
    _require_relative(pattern)
    try:
        found = [path for path in root.glob(pattern) if path.is_file() and not paths.is_gits(root, path)]
    except (ValueError, NotImplementedError, OSError):
        raise ToolFailed(f"{pattern} is no pattern.", "Use * and **, such as **/*.py.") from None
    there = [path for path in found if path.resolve().is_relative_to(root)]
    kept = _not_ignored(root) if there else None
    found = [path for path in there if kept is None or paths.named(root, path.resolve()) in kept]
    if there and not found:
        return ToolResult(IGNORED.format(len(there)))
    found.sort(key=lambda path: (-path.stat().st_mtime, str(path)))
    return _listed([paths.named(root, path) for path in islice(found, MOST_HITS)], len(found), "No file is called so.")


def grep(root: Path, arguments: dict[str, Any]) -> ToolResult:
    """Return lines that match a regular expression, as file:line: text."""
    below = paths.resolved(root, arguments["path"] or ".")
    if paths.is_gits(root, below):
        return ToolResult("No line matches.")
    search = _by_ripgrep if shutil.which("rg") else _by_python
    hits = [*islice(search(root, below, arguments["pattern"]), MOST_HITS + 1)]
    return _listed(hits[:MOST_HITS], len(hits), "No line matches.", is_more=len(hits) > MOST_HITS)


def _not_ignored(root: Path) -> set[str] | None:
    """Return the names of the files that .gitignore leaves in; None where ripgrep is not there to tell."""
    if shutil.which("rg") is None:
        return None
    command = ["rg", "--files", "--null", "--hidden", "--no-require-git", "--glob=!.git"]
    found = subprocess.run(command, cwd=root, capture_output=True, check=False)
    is_told = found.returncode in (0, 1) or found.stdout
    return {os.fsdecode(name) for name in found.stdout.split(b"\0")} if is_told else None


def _by_ripgrep(root: Path, below: Path, pattern: str) -> Iterator[str]:
    words = ["rg", "--line-number", "--no-heading", "--color=never", "--sort=path", "--no-require-git"]
    words += [f"--max-columns={MOST_CHARS}", "--max-columns-preview"]
    command = [*words, "--regexp", pattern, "--", str(below.relative_to(root)) or "."]
    found = subprocess.run(command, cwd=root, capture_output=True, text=True, errors="replace", check=False)
    if found.returncode not in (0, 1):
        raise ToolFailed(found.stderr.strip()[:MOST_CHARS] or "rg failed.", "Check the regular expression.")
    for line in found.stdout.splitlines():
        yield line.removeprefix("./")


def _by_python(root: Path, below: Path, pattern: str) -> Iterator[str]:
    try:
        wanted = re.compile(pattern)
    except re.error as error:
        raise ToolFailed(f"{pattern} is no regular expression: {error}.", "Escape what is meant literally.") from None
    files = [below] if below.is_file() else sorted(path for path in below.rglob("*") if path.is_file())
    for path in files:
        if paths.is_gits(root, path) or not path.resolve().is_relative_to(root):
            continue
        try:
            lines = texts.read(root, path.resolve()).splitlines()
        except ToolFailed:  # no text: ripgrep leaves it out, too
            continue
        name = paths.named(root, path)
        yield from (f"{name}:{n}:{_cut(line)}" for n, line in enumerate(lines, 1) if wanted.search(line))


def _require_relative(pattern: str) -> None:
    if Path(pattern).is_absolute() or ".." in Path(pattern).parts:
        raise ToolFailed(f"{pattern} leads out of the workspace.", "Name it from the top of the workspace.")


def _listed(shown: list[str], count: int, nothing: str, *, is_more: bool = False) -> ToolResult:
    if not shown:
        return ToolResult(nothing)
    more = is_more or count > len(shown)
    return ToolResult("\n".join(shown) + (f"\n(only the first {len(shown)} are shown)" if more else ""))


def _cut(line: str) -> str:
    return line if len(line) <= MOST_CHARS else f"{line[:MOST_CHARS]} ..."
