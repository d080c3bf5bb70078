"""The git repository that a workspace is: how it stands, in words, too, and what a run must leave alone in it.

git itself runs in the sandbox alone, where it can change nothing. Invariants: a workspace that is no work tree, or that
git says nothing about in time, is None and all else goes on; where its settings cannot be read, nothing of `.git` can
be changed.
"""

import json
import os
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

from bot.agent import program
from bot.agent.guard import Absent, Guard, guard_of
from bot.agent.inside.paths import GIT
from bot.agent.inside.visible import visible
from bot.agent.sandbox import Bounds, Sandbox
from bot.errors import SandboxUnavailable

BOUNDS = Bounds(seconds=10.0)
KEPT_S = 2.0  # that a state is shown again without a look, if none of heed's runs came in between
SLOW_S = 5.0  # a look that took so long is not repeated for a while
SLOW_KEPT_S = 600.0
COMMON = "commondir"  # in .git it would name another folder for hooks and settings
# Of .git: what names programs that git runs; empty ones stand for those that are not there.
_OWN: Mapping[str, Absent] = {f"{GIT}/config": "file", f"{GIT}/config.worktree": "file", f"{GIT}/hooks": "folder"}
_OTHERS: Mapping[str, Absent] = {f"{GIT}/modules": "", f"{GIT}/worktrees": ""}  # have settings of their own
_WHOLE: Mapping[str, Absent] = {GIT: ""}


@dataclass(frozen=True)
class GitState:
    """The state of a work tree; `branch` is a short commit where it is detached, `conflicts` are the first files."""

    branch: str
    changed: int
    conflicts: list[str] = field(default_factory=list)
    is_detached: bool = False


class Repository:
    """The repository of one workspace, if it is one."""

    def __init__(self, sandbox: Sandbox) -> None:
        self._sandbox = sandbox
        self._kept: GitState | None = None
        self._kept_until_s = 0.0
        self._is_slow = False

    async def state(self) -> GitState | None:
        """Return how it stands, None if git cannot say."""
        if not self._has(GIT):
            return None
        begun_s = time.monotonic()
        if begun_s > self._kept_until_s:
            found = await self._asked("git_state", {})
            ended_s = time.monotonic()
            self._is_slow = ended_s - begun_s > SLOW_S
            self._kept_until_s = ended_s + (SLOW_KEPT_S if self._is_slow else KEPT_S)
            self._kept = _state(found) if found else None
        return self._kept

    @asynccontextmanager
    async def guarded(self) -> AsyncIterator[Guard]:
        """Yield what a run in the block must leave alone; what it has put into .git to get around that is removed."""
        had_common = self._has(f"{GIT}/{COMMON}")
        try:
            yield await self._guard()
        finally:
            self._kept_until_s = self._kept_until_s if self._is_slow else 0.0
            if not had_common:
                self._remove_common()

    async def _guard(self) -> Guard:
        folder, wanted = self._sandbox.folder, dict[str, Absent]()
        if not self._has(GIT):
            return Guard()
        is_file = not (folder / GIT).is_dir()  # it names a folder that the sandbox does not see
        named = None if is_file else await self._asked("git_settings", {"folder": str(folder)})
        if named is None:
            return guard_of(folder, _WHOLE)
        wanted.update((name, "file") for name in named["files"])
        wanted.update((name, "folder") for name in named["folders"])
        return guard_of(folder, {**wanted, **_OTHERS, **_OWN})

    async def _asked(self, about: str, arguments: Mapping[str, Any]) -> dict[str, Any] | None:
        """Return what git says in the sandbox, None if it says nothing that can be read."""
        try:
            found = await program.ask(self._sandbox.within(BOUNDS), about, arguments, Guard(is_frozen=True))
        except SandboxUnavailable:
            return None
        if found.status != 0:
            return None
        try:
            answered = json.loads(found.output)
            return json.loads(answered["output"]) if answered["success"] else None
        except (ValueError, TypeError, KeyError):  # longer than an output may be, or written over by another
            return None

    def _has(self, name: str) -> bool:
        return os.path.lexists(self._sandbox.folder / name)

    def _remove_common(self) -> None:
        with suppress(OSError):
            descriptor = os.open(self._sandbox.folder / GIT, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
            try:
                os.unlink(COMMON, dir_fd=descriptor)
            finally:
                os.close(descriptor)


def summary(git: GitState) -> str:
    """Return a state in a few words, such as "main, 3 changed files"."""
    words = [git.branch, _files(git.changed, "changed ") if git.changed else "nothing changed"]
    if git.conflicts:
        words.append("1 conflict" if len(git.conflicts) == 1 else f"{len(git.conflicts)} conflicts")
    return ", ".join(words)


def placed(where: str, git: GitState | None) -> str:
    """Return a place with the state of its repository, if it is one."""
    return where if git is None else f"{where} ({summary(git)})"


def told(git: GitState | None) -> str:
    """Return a line for the model about the repository, empty if there is none."""
    if git is None:
        return ""
    head = f"at commit {git.branch}" if git.is_detached else f"on branch {git.branch}"
    changed = f"{_files(git.changed) if git.changed else 'no file'} {'are' if git.changed > 1 else 'is'} changed"
    said = f"The folder is a git repository {head}; {changed}."
    if git.conflicts:
        said += f" There are unresolved conflicts in {', '.join(map(json.dumps, git.conflicts))}."
    return said


def _files(count: int, kind: str = "") -> str:
    return f"1 {kind}file" if count == 1 else f"{count} {kind}files"


def _state(found: dict[str, Any]) -> GitState:
    names = [visible(name).replace("\n", " ").replace("\t", " ") for name in found["conflicts"]]
    return GitState(visible(found["branch"]), found["changed"], names, found["is_detached"])
