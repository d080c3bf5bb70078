"""Folders that an agent may work in, with a sandbox around, and the account it is where the tests run as root."""

import asyncio
import os
import pwd
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from bot.agent.sandbox import Sandbox
from bot.errors import SandboxUnavailable

USER = "nobody" if os.geteuid() == 0 else ""  # a folder below /root or pytest's own is out of its reach


@contextmanager
def workspace() -> Iterator[Path]:
    """An empty folder that belongs to the account."""
    outer = Path(tempfile.mkdtemp(prefix="heed-workspace-"))
    try:
        outer.chmod(0o755)
        folder = outer / "work"
        folder.mkdir()
        give(folder)
        yield folder
    finally:
        shutil.rmtree(outer)


def put(folder: Path, name: str, text: str) -> Path:
    """Write a file that belongs to the account, with its folders."""
    path = folder / name
    for parent in reversed(path.relative_to(folder).parents[:-1]):
        (folder / parent).mkdir(exist_ok=True)
        give(folder / parent)
    path.write_text(text, encoding="utf-8", newline="")
    give(path)
    return path


def give(path: Path) -> None:
    """Let a file belong to the account."""
    if USER:
        owner = pwd.getpwnam(USER)
        os.chown(path, owner.pw_uid, owner.pw_gid, follow_symlinks=False)


def names(folder: Path) -> set[str]:
    """What lies in a folder."""
    return {path.name for path in folder.iterdir()}


@pytest.fixture
def folder() -> Iterator[Path]:
    """An empty workspace."""
    with workspace() as made:
        yield made


@pytest.fixture(scope="session")
def can_run() -> None:
    """Bubblewrap runs here; skipped where the machine allows no user namespaces."""
    if shutil.which("bwrap") is None:
        pytest.fail("no bubblewrap on PATH: install it (apt install bubblewrap)")
    with workspace() as made:
        try:
            asyncio.run(Sandbox(made, USER).try_out())
        except SandboxUnavailable as error:
            pytest.skip(str(error))


@pytest.fixture
def sandbox(folder: Path, can_run: None) -> Sandbox:
    """A sandbox around the workspace."""
    return Sandbox(folder, USER)
