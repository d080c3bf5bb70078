"""The folders that an agent of heed's works in: those that the operator allows, and a scratch folder for each person.

Invariant: a name of a workspace is looked up and never part of a path.
"""

import asyncio
import os
import shutil
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from bot.account_settings import AgentSettings
from bot.agent.inside.result import ToolResult
from bot.agent.sandbox import Bounds, Sandbox, account
from bot.agent.toolbox import Toolbox
from bot.agent.tools import CHANGING, Call
from bot.errors import AgentNotAllowed

SCRATCH = ""  # the name of a person's own folder
NO_SUCH = "There is no workspace {}. You can work in{} your own scratch folder."
GONE = "The folder of this workspace is gone."
BRING_BACK = "Bring the folder back, or begin a session in another workspace."
FULL = "The scratch folder holds {} of {} MB."
DELETE_SOME = "Delete files with bash first; reading still works."
HEEDS_OWN = (
    "{} holds heed's own data, which tools must not see: choose another folder, or move the data (HEED_DATA_DIR)."
)
_MB = 1_000_000
_ENTRY_BYTES = 4096  # that a file, a folder or a link takes at least


class Workspaces:
    """The folders of one heed."""

    def __init__(self, settings: AgentSettings, scratch: Path, data_dir: Path) -> None:
        """`scratch` is where the people's own folders are made, `data_dir` where heed keeps its data."""
        self._settings = settings
        self._scratch = scratch
        self._data_dir = data_dir
        self._folders = {folder.name: folder for folder in settings.folders}

    @property
    def names(self) -> list[str]:
        """The workspaces that a session may name; the empty one is the person's own."""
        return [SCRATCH, *self._folders]

    def toolbox(self, name: str, user_id: str) -> Toolbox:
        """Return the tools in a workspace. Raises AgentNotAllowed, SandboxUnavailable."""
        if name == SCRATCH:
            return ScratchToolbox(self._own(user_id), self._settings)
        if name not in self._folders:
            there = f": {', '.join(self._folders)}, or" if self._folders else ""
            raise AgentNotAllowed(NO_SUCH.format(name[:64], there), "workspace")
        if shows_data(self._folders[name], self._data_dir):
            raise AgentNotAllowed(HEEDS_OWN.format(name), "workspace")
        return FolderToolbox(Sandbox(self._folders[name], self._settings.account))

    def _own(self, user_id: str) -> Path:
        """Return a person's scratch folder, made if need be, as one of the account that tools run as."""
        owner = account(self._settings.account)
        folder = self._scratch / user_id
        for made in (self._scratch, folder):
            made.mkdir(mode=0o711, exist_ok=True)
        if owner.uid is not None and owner.gid is not None:
            os.chown(folder, owner.uid, owner.gid)
        return folder


class FolderToolbox(Toolbox):
    """The tools in a folder that may be gone by now."""

    async def run(self, call: Call, shown: ToolResult | None = None) -> ToolResult:
        """Do what a call asks. Raises SandboxUnavailable."""
        return await super().run(call, shown) if self.folder.is_dir() else gone()

    async def preview(self, call: Call) -> ToolResult:
        """Return what a call would change. Changes nothing."""
        return await super().preview(call) if self.folder.is_dir() else gone()


class ScratchToolbox(FolderToolbox):
    """The tools in a scratch folder, which may grow to its quota."""

    def __init__(self, folder: Path, settings: AgentSettings) -> None:
        super().__init__(Sandbox(folder, settings.account))
        self._quota_bytes = settings.scratch_mb * _MB

    async def run(self, call: Call, shown: ToolResult | None = None) -> ToolResult:
        """Do what a call asks, in the room that is left. Raises SandboxUnavailable.

        The sandbox watches the whole disk, where others may delete meanwhile; so the folder is measured behind it.
        """
        used_bytes = await self._used_bytes()
        left_bytes = self._quota_bytes - used_bytes
        if left_bytes <= 0 and call.tool in CHANGING:
            return ToolResult(self._full(used_bytes), False, DELETE_SOME)
        self.sandbox.bounds = Bounds(disk_bytes=max(_MB, min(left_bytes, Bounds.disk_bytes)))
        result = await super().run(call, shown)
        now_bytes = await self._used_bytes()
        if now_bytes <= max(used_bytes, self._quota_bytes) or not result.success:
            return result
        return replace(result, success=False, feedback=f"{self._full(now_bytes)} {DELETE_SOME}")

    async def _used_bytes(self) -> int:
        return await asyncio.to_thread(size_of, self.folder, self._quota_bytes)

    def _full(self, used_bytes: int) -> str:
        return FULL.format(used_bytes // _MB, self._quota_bytes // _MB)


def gone() -> ToolResult:
    """Return that a workspace is not there any more."""
    return ToolResult(GONE, success=False, feedback=BRING_BACK)


def shows_data(folder: Path, data_dir: Path) -> bool:
    """Return True if a program that sees a folder sees heed's data: one of the two lies in the other."""
    one, other = folder.resolve(), data_dir.resolve()
    return other.is_dir() and (one.is_relative_to(other) or other.is_relative_to(one))


def size_of(folder: Path, hidden_bytes: int) -> int:
    """Return the bytes that a folder takes, links not followed.

    `hidden_bytes` are counted for what cannot be looked into: else its account could hide files by their modes.
    """
    total, hidden = 0, list[OSError]()
    for top, folders, names in os.walk(folder, onerror=hidden.append):
        for name in (*folders, *names):
            try:
                total += max(_ENTRY_BYTES, os.lstat(os.path.join(top, name)).st_size)  # noqa: PTH118  thousands
            except OSError as error:
                hidden.append(error)
    return total + hidden_bytes * sum(not isinstance(error, FileNotFoundError) for error in hidden)


def erase(folder: Path) -> None:
    """Remove a folder with all that is in it, also where modes forbid to look. Blocking: nothing runs in it."""
    _open(folder)
    for top, names, _ in os.walk(folder):
        for name in names:
            _open(Path(top, name))
    shutil.rmtree(folder, ignore_errors=True)


def _open(folder: Path) -> None:
    """Let heed look into a folder, and change it; a link is left as it is."""
    with suppress(OSError):
        if not folder.is_symlink():
            folder.chmod(0o700)
