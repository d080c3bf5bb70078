"""engine.pocket.workshop.folder: what stands in a folder, and its check."""

import random
import subprocess
from pathlib import Path

import pytest

from engine.pocket.workshop import folder as folders
from engine.pocket.workshop.folder import CHECK, FileLine, Folder

APP = Folder({"app.ini": ("port = 80", "host=x")}, ("app.ini", FileLine("port", "90")))


def test_a_line_is_found_by_its_key() -> None:
    """However the sign in it stands."""
    assert (APP.position("app.ini", "host"), APP.value("app.ini", "host"), APP.value("app.ini", "port")) == (
        2,
        "x",
        "80",
    )


@pytest.mark.parametrize(("line", "is_right"), [("port = 90", True), ("port=90", True), ("port = 9", False)])
def test_the_check_runs_and_says_what_is_wrong(line: str, is_right: bool, tmp_path: Path) -> None:
    """As a script it says what `is_right` says."""
    changed = APP.with_lines("app.ini", (line,))
    for name, text in changed.texts.items():
        (tmp_path / name).write_text(text)
    done = subprocess.run(["sh", CHECK], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode == 0, changed.is_right) == (is_right, is_right)
    assert done.stdout == ("ok\n" if is_right else "app.ini: port must be 90\n")


def test_a_check_without_a_demand_is_content() -> None:
    """And so it says."""
    assert Folder({}).is_right
    assert Folder({}).texts == {CHECK: "echo ok\n"}


@pytest.mark.parametrize("is_held_out", [False, True])
def test_a_drawn_folder_has_no_key_twice(is_held_out: bool) -> None:
    """So that a task names one line."""
    rng = random.Random(2)
    for _ in range(200):
        drawn = folders.drawn(rng, is_held_out=is_held_out)
        keys = [line.split(" = ")[0] for lines in drawn.files.values() for line in lines]
        assert len(keys) == len(set(keys))
        assert 2 <= len(drawn.files) <= 3
