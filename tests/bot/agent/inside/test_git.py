"""bot.agent.inside.git: how a repository stands, and what its settings name, read from real ones."""

import json
from pathlib import Path
from typing import Any

import pytest

from bot.agent.inside import git as inside_git
from bot.agent.inside.result import ToolFailed
from tests.bot.agent.repositories import LEAVES_A_MARK, git, make_conflict, make_repository


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A work tree with one commit."""
    (tmp_path / "work").mkdir()
    return make_repository(tmp_path / "work")


def state(root: Path) -> dict[str, Any]:
    """How it stands."""
    found: dict[str, Any] = json.loads(inside_git.state(root, {}).output)
    return found


def settings(root: Path) -> dict[str, list[str]]:
    """The files and folders that settings name."""
    found: dict[str, list[str]] = json.loads(inside_git.settings(root, {"folder": "/home/ana/work"}).output)
    return found


def test_a_branch_and_what_has_changed(root: Path) -> None:
    """Staged, not staged, removed and untracked files count once each; what .gitignore leaves out does not."""
    assert state(root) == {"branch": "main", "is_detached": False, "changed": 0, "conflicts": []}
    (root / "a.txt").write_text("two\n")
    (root / "new").mkdir()
    for name in ("new/b.txt", "new/c d.txt", "ignored"):
        (root / name).write_text("x")
    (root / ".gitignore").write_text("ignored\n")
    git(root, "add", "new/b.txt")
    assert state(root)["changed"] == 4


def test_a_commit_stands_for_a_branch_that_there_is_not(root: Path) -> None:
    """The short one; a repository without a commit has its branch."""
    git(root, "checkout", "--quiet", "--detach")
    assert state(root) == {
        "branch": git(root, "rev-parse", "--short=7", "HEAD").strip(),
        "is_detached": True,
        "changed": 0,
        "conflicts": [],
    }
    (root / "inner").mkdir()
    git(root / "inner", "init", "--quiet")
    assert state(root / "inner")["branch"] == "main"


def test_conflicts_are_named(root: Path) -> None:
    """By their files."""
    make_conflict(root)
    found = state(root)
    assert (found["changed"], found["conflicts"]) == (1, ["a.txt"])


def test_what_is_no_work_tree_is_refused(root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """So is everything where git is not there."""
    (tmp_path / "plain").mkdir()
    git(tmp_path / "plain", "init", "--quiet", "--bare")
    with pytest.raises(ToolFailed, match="no work tree"):
        state(tmp_path / "plain")
    monkeypatch.setattr(inside_git, "GIT", ["no-such-program"])
    with pytest.raises(ToolFailed, match="not there"):
        state(root)


def test_no_program_that_settings_name_is_started(root: Path, tmp_path: Path) -> None:
    """Neither the watcher of files nor a hook; without heed's options the watcher is. Nothing is written."""
    git(root, "config", "core.fsmonitor", LEAVES_A_MARK.format(tmp_path / "mark"))
    index = (root / ".git" / "index").stat()
    (root / "a.txt").touch()
    assert state(root)["branch"] == "main"
    assert not (tmp_path / "mark").exists()
    assert (root / ".git" / "index").stat().st_mtime_ns == index.st_mtime_ns
    git(root, "status")
    assert (tmp_path / "mark").exists()


def test_settings_name_files_and_hooks(root: Path) -> None:
    """By the folder's name outside, and from the file that names them; those that lie elsewhere are left out."""
    assert settings(root) == {"files": [], "folders": []}
    (root / "more.gitconfig").write_text("[include]\n\tpath = deep/again\n[core]\n\thooksPath = .husky/_\n")
    for name, value in (
        ("include.path", "../more.gitconfig"),
        ("includeIf.onbranch:x.path", "/home/ana/work/later"),
        ("includeIf.gitdir:y.path", "/etc/gitconfig"),
    ):
        git(root, "config", "--add", name, value)
    git(root, "config", "--add", "include.path", "~/mine")
    git(root, "config", "--add", "include.path", "../../out")
    found = settings(root)
    assert sorted(found["files"]) == ["deep/again", "later", "more.gitconfig"]
    assert found["folders"] == [".husky/_"]


def test_settings_that_include_each_other_end(root: Path) -> None:
    """And those that cannot be read are refused, as are too many."""
    git(root, "config", "include.path", "../a.gitconfig")
    (root / "a.gitconfig").write_text("[include]\n\tpath = a.gitconfig\n")
    assert settings(root)["files"] == ["a.gitconfig"]
    (root / "a.gitconfig").write_text("[include\n")
    with pytest.raises(ToolFailed):
        settings(root)
    (root / "a.gitconfig").write_text("".join(f"[include]\n\tpath = f{number}\n" for number in range(30)))
    with pytest.raises(ToolFailed, match="Too many"):
        settings(root)
