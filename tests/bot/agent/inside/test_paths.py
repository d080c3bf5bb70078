"""bot.agent.inside.paths: a name leads into the workspace, or nowhere."""

from pathlib import Path

import pytest

from bot.agent.inside.paths import changeable, is_gits, named, resolved
from bot.agent.inside.result import ToolFailed


def test_a_name_from_the_top_of_the_workspace(tmp_path: Path) -> None:
    """Also of a file that is not there yet, and through a link within."""
    (tmp_path / "a").mkdir()
    (tmp_path / "b").symlink_to("a")
    assert named(tmp_path, resolved(tmp_path, "b/new.txt")) == "a/new.txt"
    assert resolved(tmp_path, "a/../a/x") == tmp_path / "a" / "x"


@pytest.mark.parametrize(
    "name", ["", "/", "/etc/passwd", "..", "../x", "a/../../x", "~root/x", "out", "out/x", "circle", "x\0y", "x" * 5000]
)
def test_every_other_name_is_refused(tmp_path: Path, name: str) -> None:
    """With what to do instead."""
    root = tmp_path / "work"
    root.mkdir()
    (root / "out").symlink_to(tmp_path)
    (root / "circle").symlink_to("circle")
    with pytest.raises(ToolFailed) as refused:
        resolved(root, name)
    assert refused.value.result.feedback


def test_gits_own_files_are_not_changed(tmp_path: Path) -> None:
    """In any folder, in any case, also through a link; files that only sound like them are."""
    (tmp_path / ".git").mkdir()
    (tmp_path / "link").symlink_to(".git")
    for name in (".git", ".git/hooks/x", "a/.Git/config", "link/config", "a/../.git/x"):
        with pytest.raises(ToolFailed, match="belongs to git itself"):
            changeable(tmp_path, name)
    for name in (".gitignore", ".github/x", "a.git/x", "git/x"):
        assert changeable(tmp_path, name) == tmp_path / name
    assert not is_gits(tmp_path, tmp_path)
