"""git, asked about the workspace: how it stands, and the files that its settings name.

Runs in the sandbox alone, since a repository's settings name programs that git starts. Invariants: nothing is locked or
written; the hooks and the watcher of files that settings name are not started.
"""

import json
import posixpath
import subprocess
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

from bot.agent.inside.result import ToolFailed, ToolResult

GIT = [
    "git", "--no-optional-locks", "-c", "safe.directory=*", "-c", "core.fsmonitor=false",
    "-c", "core.hooksPath=/dev/null",
]  # fmt: skip
STATUS = ["status", "--porcelain=v2", "--branch", "-z", "--no-renames", "--untracked-files=all",
          "--ignore-submodules=dirty"]  # fmt: skip
MOST_CONFLICTS = 20
MOST_NAME_CHARS = 120
MOST_ENTRY_BYTES = 64 * 1024
MOST_SETTINGS = 20  # files of settings
MOST_ENTRIES = 10_000  # of one of them
_CHUNK_BYTES = 64 * 1024


def state(root: Path, _arguments: dict[str, Any]) -> ToolResult:
    """Return the branch (else the commit), how many files are changed and which have conflicts, as JSON.

    Raises ToolFailed if that is no work tree of git's, or git is not there.
    """
    commit, branch, changed, conflicts = "", "", 0, list[str]()
    for entry in _entries(root, STATUS):
        kind, _, rest = entry.partition(" ")
        if entry.startswith("# branch.oid "):
            commit = entry.split(" ", 2)[2][:7]
        elif entry.startswith("# branch.head "):
            branch = entry.split(" ", 2)[2]
        elif kind in ("1", "2", "u", "?"):
            changed += 1
        if kind == "u" and len(conflicts) < MOST_CONFLICTS:
            conflicts.append(rest.split(" ", 9)[9][:MOST_NAME_CHARS])
    is_detached = branch == "(detached)"
    name = commit if is_detached else branch[:MOST_NAME_CHARS]
    found = {"branch": name, "is_detached": is_detached, "changed": changed, "conflicts": conflicts}
    return ToolResult(json.dumps(found))


def settings(root: Path, arguments: dict[str, Any]) -> ToolResult:
    """Return the files that settings are included from, and the folders of hooks, that lie in the workspace, as JSON.

    Both by their names, also where nothing is there; `folder` is the workspace as it is called outside. Raises
    ToolFailed if settings cannot be read.
    """
    waiting, files, folders = [".git/config", ".git/config.worktree"], list[str](), list[str]()
    while waiting:
        file = waiting.pop()
        for name, value in _settings(root, file):
            if name == "core.hookspath":
                folders += _inside(arguments["folder"], "", value)
            elif name == "include.path" or (name.startswith("includeif.") and name.endswith(".path")):
                named = _inside(arguments["folder"], posixpath.dirname(file), value)
                new = [path for path in named if path not in files]
                waiting, files = waiting + new, files + new
        if len(files) > MOST_SETTINGS:
            raise ToolFailed("Too many files of settings.", "")
    return ToolResult(json.dumps({"files": files, "folders": folders}))


def _entries(cwd: Path, words: list[str]) -> Iterator[str]:
    """Yield what git prints, entry by entry. Raises ToolFailed if it fails."""
    try:
        process = subprocess.Popen([*GIT, *words], cwd=cwd, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    except OSError:
        raise ToolFailed("git is not there.", "") from None
    with process:
        assert process.stdout is not None
        rest = b""
        while chunk := process.stdout.read(_CHUNK_BYTES):
            *whole, rest = (rest + chunk).split(b"\0")
            yield from (entry.decode("utf-8", "replace") for entry in whole)
            if len(rest) > MOST_ENTRY_BYTES:
                process.kill()
                raise ToolFailed("git prints more than a name.", "")
    if process.returncode != 0:
        raise ToolFailed("That is no work tree of git's.", "")


def _settings(root: Path, file: str) -> Iterator[tuple[str, str]]:
    """Yield the settings of one file, without those it includes."""
    if (root / file).exists():
        words = ["config", "--file", str(root / file), "--list", "-z"]
        for entry in islice(_entries(Path("/"), words), MOST_ENTRIES):
            name, _, value = entry.partition("\n")
            yield name, value


def _inside(folder: str, start: str, value: str) -> list[str]:
    """Return a path of a setting by its name in the workspace; nothing if it lies elsewhere, or is all of it."""
    if value.startswith(f"{folder}/"):
        value, start = value.removeprefix(f"{folder}/"), ""
    name = posixpath.normpath(posixpath.join(start, value))
    is_elsewhere = name in (".", "..") or name.startswith(("/", "../")) or value.startswith("~")
    return [] if is_elsewhere else [name]
