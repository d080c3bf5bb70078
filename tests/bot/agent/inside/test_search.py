"""bot.agent.inside.search: read, glob and grep."""

import os
from pathlib import Path

import pytest

from bot.agent.inside import search
from bot.agent.inside.result import ToolFailed


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A workspace with a few files, one link out of it and git's own folder."""
    for age, (name, text) in enumerate(
        {"a.py": "import os\nx = 1\n", "b/c.py": "import sys\n", ".git/d.py": "import git\n"}.items()
    ):
        path = tmp_path / "work" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        os.utime(path, (age, age))
    (tmp_path / "out.py").write_text("import out\n")
    (tmp_path / "work" / "link.py").symlink_to(tmp_path / "out.py")
    (tmp_path / "work" / "binary.py").write_bytes(b"import \0")
    os.utime(tmp_path / "work" / "binary.py", (0, 0))
    return tmp_path / "work"


def read(root: Path, name: str, offset: int = 1, limit: int = 400) -> str:
    """What `read` shows of a file."""
    return search.read(root, {"path": name, "offset": offset, "limit": limit}).output


def test_lines_come_with_their_numbers(root: Path) -> None:
    """From the wanted one on; how many more there are is said."""
    (root / "long").write_text("".join(f"line {number}\n" for number in range(1, 10)))
    assert read(root, "a.py") == "     1\timport os\n     2\tx = 1\n"
    assert read(root, "long", 3, 2) == "     3\tline 3\n     4\tline 4\n(5 more lines)\n"
    assert read(root, "long", 10) == "long has 9 lines."
    (root / "wide").write_text("x" * 10_000)
    assert len(read(root, "wide")) < 500


def test_files_are_found_by_name(root: Path) -> None:
    """The newest first; nothing of git's and nothing outside."""
    assert search.glob(root, {"pattern": "**/*.py"}).output.split() == ["b/c.py", "a.py", "binary.py"]
    assert search.glob(root, {"pattern": "*.txt"}).output == "No file is called so."
    for pattern in ("/etc/*", "../*", "b/../../*"):
        with pytest.raises(ToolFailed, match="out of the workspace"):
            search.glob(root, {"pattern": pattern})


@pytest.mark.parametrize("has_ripgrep", [True, False])
def test_lines_are_found_by_a_regular_expression(
    root: Path, monkeypatch: pytest.MonkeyPatch, has_ripgrep: bool
) -> None:
    """With ripgrep where it is, else without: the same."""
    if not has_ripgrep:
        monkeypatch.setattr(search.shutil, "which", lambda _name: None)
    elif search.shutil.which("rg") is None:
        pytest.skip("ripgrep is not installed here")
    assert search.grep(root, {"pattern": "^import", "path": ""}).output == "a.py:1:import os\nb/c.py:1:import sys"
    assert search.grep(root, {"pattern": "sys", "path": "b"}).output == "b/c.py:1:import sys"
    assert search.grep(root, {"pattern": "os", "path": "a.py"}).output.endswith("1:import os")
    assert search.grep(root, {"pattern": "none", "path": ""}).output == "No line matches."
    with pytest.raises(ToolFailed):
        search.grep(root, {"pattern": "(", "path": ""})


@pytest.mark.skipif(search.shutil.which("rg") is None, reason="ripgrep is not installed here")
def test_what_gitignore_leaves_out_is_not_found(root: Path) -> None:
    """By name or by text, also where the workspace is a part of a repository; unless it is all that there is."""
    (root / ".git" / "d.py").unlink()
    (root / ".git").rmdir()
    (root / ".gitignore").write_text("b/\n*.log\n")
    (root / "x.log").write_text("import log\n")
    (root / ".hidden.py").write_text("hidden\n")
    (root / "inner.py").symlink_to("a.py")
    os.utime(root / ".hidden.py", (5, 5))
    assert search.glob(root, {"pattern": "**/*.py"}).output.split() == [".hidden.py", "a.py", "binary.py", "inner.py"]
    assert search.grep(root, {"pattern": "^import", "path": ""}).output == "a.py:1:import os"
    assert search.glob(root, {"pattern": "*.log"}).output == search.IGNORED.format(1)
    assert search.grep(root, {"pattern": "log", "path": "x.log"}).output.endswith("1:import log")


def test_without_ripgrep_nothing_is_left_out(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """But git's own folder, also where it is named."""
    monkeypatch.setattr(search.shutil, "which", lambda _name: None)
    (root / ".gitignore").write_text("b/\n")
    assert "b/c.py" in search.glob(root, {"pattern": "**/*.py"}).output


@pytest.mark.parametrize("path", [".git", ".git/d.py"])
def test_no_line_of_gits_own_files_is_found(root: Path, path: str) -> None:
    """With ripgrep, too."""
    assert search.grep(root, {"pattern": "import", "path": path}).output == "No line matches."


def test_only_the_first_hits_are_shown(root: Path) -> None:
    """And that there are more."""
    (root / "many").write_text("hit\n" * 60)
    found = search.grep(root, {"pattern": "hit", "path": "many"}).output.splitlines()
    assert (len(found), found[-1]) == (51, "(only the first 50 are shown)")
    for number in range(60):
        (root / f"f{number}.txt").touch()
    assert search.glob(root, {"pattern": "*.txt"}).output.splitlines()[-1] == "(only the first 50 are shown)"
