"""Real git repositories for the tests of the agent, which belong to the account that its tools run as."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.bot.agent.workspaces import give, put

OPTIONS = {"user.name": "Ana", "user.email": "ana@example.org", "init.defaultBranch": "main", "safe.directory": "*"}
LEAVES_A_MARK = "touch {}; false"  # as a program that settings name


def git(folder: Path, *words: str, may_fail: bool = False) -> str:
    """Run git in a folder, outside of any sandbox as the person would; all of the folder is the account's then."""
    return outside(folder, "git", *words, may_fail=may_fail)


def outside(folder: Path, *command: str, may_fail: bool = False) -> str:
    """Run a command in a folder, outside of any sandbox; all of the folder is the account's then."""
    surroundings = {"PATH": os.defpath, "HOME": "/nowhere", "GIT_CONFIG_NOSYSTEM": "1"}
    surroundings["GIT_CONFIG_COUNT"] = str(len(OPTIONS))
    for number, (name, value) in enumerate(OPTIONS.items()):
        surroundings |= {f"GIT_CONFIG_KEY_{number}": name, f"GIT_CONFIG_VALUE_{number}": value}
    found = subprocess.run(command, cwd=folder, env=surroundings, capture_output=True, text=True, check=False)
    assert may_fail or found.returncode == 0, found.stderr
    give_all(folder)
    return found.stdout


def give_all(folder: Path) -> None:
    """Let a folder and all that is in it belong to the account."""
    for path in (folder, *folder.rglob("*")):
        give(path)


def make_repository(folder: Path) -> Path:
    """A work tree on main with one commit of a.txt."""
    if shutil.which("git") is None:
        pytest.skip("git is not installed here")
    put(folder, "a.txt", "one\n")
    git(folder, "init", "--quiet")
    git(folder, "config", "user.name", "Ana")
    git(folder, "config", "user.email", "ana@example.org")
    git(folder, "add", ".")
    git(folder, "commit", "--quiet", "--message", "one")
    return folder


def make_conflict(folder: Path) -> None:
    """Merge two changes of a.txt that meet."""
    git(folder, "switch", "--quiet", "--create", "other")
    put(folder, "a.txt", "theirs\n")
    git(folder, "commit", "--quiet", "--all", "--message", "theirs")
    git(folder, "switch", "--quiet", "main")
    put(folder, "a.txt", "ours\n")
    git(folder, "commit", "--quiet", "--all", "--message", "ours")
    git(folder, "merge", "--quiet", "other", may_fail=True)
