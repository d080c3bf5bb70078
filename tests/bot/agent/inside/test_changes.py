"""bot.agent.inside.changes: write, edit and edit_lines, as what stands before and after."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.agent.inside import changes
from bot.agent.inside.result import ToolFailed

POEM = "one\ntwo\nthree\ntwo\n"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A workspace with a file."""
    (tmp_path / "poem").write_text(POEM)
    return tmp_path


def edit(root: Path, old: str, new: str, *, every: bool = False) -> changes.FileChange:
    """A change of the file by a passage."""
    return changes.edit(root, {"path": "poem", "old": old, "new": new, "all": every})


def edit_lines(root: Path, start: int, end: int, content: str) -> str:
    """The file with other lines."""
    return changes.edit_lines(root, {"path": "poem", "start": start, "end": end, "content": content}).after


def refusal(change: Any, *arguments: Any) -> str:
    """What a change is refused with, and what to do."""
    with pytest.raises(ToolFailed) as refused:
        change(*arguments)
    return f"{refused.value.result.output} {refused.value.result.feedback}"


def test_a_passage_that_stands_there_once_is_replaced(root: Path) -> None:
    """Over several lines, too; the file itself is left until the change is made."""
    change = edit(root, "one\ntwo", "zero\none")
    assert change.after == "zero\none\nthree\ntwo\n"
    assert (root / "poem").read_text() == POEM
    assert change.make(root).output == change.diff
    assert (root / "poem").read_text() == change.after


def test_one_that_stands_there_twice_or_not_at_all_is_refused(root: Path) -> None:
    """The model is told what would help; with `all` every one is replaced."""
    assert "That is in poem 2 times. Take in more" in refusal(edit, root, "two", "2")
    assert edit(root, "two", "2", every=True).after == "one\n2\nthree\n2\n"
    assert "That is not in poem. Line 3 is near: 'three'." in refusal(edit, root, "  tree\n", "3")
    assert "Read the file again" in refusal(edit, root, "zzzzzz", "3")
    assert "is empty" in refusal(edit, root, "", "3")


def test_line_numbers_that_were_copied_are_left_out(root: Path) -> None:
    """Of what is replaced and of what comes in its place; a text that has such numbers itself keeps them."""
    assert edit(root, "     1\tone\n     2\ttwo\n", "     1\tzero\n     2\ttwo\n").after == "zero\ntwo\nthree\ntwo\n"
    assert edit_lines(root, 1, 1, "     1\tzero\n") == "zero\ntwo\nthree\ntwo\n"
    (root / "poem").write_text("1\tone\n")
    assert edit(root, "1\tone", "1\tuno").after == "1\tuno\n"


def test_lines_are_counted_from_one_and_both_ends_are_replaced(root: Path) -> None:
    """One past the last adds lines; an empty content deletes."""
    assert edit_lines(root, 2, 3, "2\n3") == "one\n2\n3\ntwo\n"
    assert edit_lines(root, 5, 5, "five") == POEM + "five\n"
    assert edit_lines(root, 5, 4, "five") == POEM + "five\n"
    assert edit_lines(root, 4, 4, "") == "one\ntwo\nthree\n"
    (root / "poem").write_text("one")
    assert edit_lines(root, 2, 2, "two") == "one\ntwo\n"
    (root / "poem").write_text("")
    assert edit_lines(root, 1, 1, "one") == "one\n"


@pytest.mark.parametrize(("start", "end"), [(3, 2), (1, 5), (6, 6), (5, 6)])
def test_lines_that_are_not_there_are_refused(root: Path, start: int, end: int) -> None:
    """With how many there are."""
    assert "poem has 4 lines" in refusal(edit_lines, root, start, end, "x")


def test_a_new_file_comes_from_nothing(root: Path) -> None:
    """Its diff says so; a file that stays the same has none; a missing line end is shown."""
    change = changes.write(root, {"path": "new", "content": "x"})
    assert (change.before, change.diff) == (
        None,
        "--- /dev/null\n+++ b/new\n@@ -0,0 +1 @@\n+x\n\\ No newline at end of file\n",
    )
    same = changes.write(root, {"path": "poem", "content": POEM})
    assert same.diff == ""
    assert same.make(root).output == "poem is as it was."


def test_a_conflict_is_said_with_the_change(root: Path) -> None:
    """Before the diff, and after the change is made."""
    (root / "poem").write_text("<<<<<<< HEAD\none\n=======\ntwo\n>>>>>>> other\n")
    change = edit(root, "one\n", "three\n")
    assert change.preview.output == f"{change.conflicts}\n{change.diff}"
    assert change.conflicts.endswith("after this change there is 1 unresolved conflict of git (line 1) left.")
    assert change.make(root).feedback == change.conflicts
    assert edit(root, "three\n", "four\n").preview.output.startswith("poem has 1 unresolved conflict")


LINES = st.lists(st.text("ab \t", max_size=4), max_size=8)


@given(LINES, LINES, st.data())
def test_other_lines_are_left_alone(old: list[str], new: list[str], data: st.DataObject) -> None:
    """Whatever stands before and after the replaced ones stands there still."""
    if not old:
        return
    start = data.draw(st.integers(1, len(old)))
    end = data.draw(st.integers(start, len(old)))
    text = "".join(f"{line}\n" for line in old)
    content = "".join(f"x{line}\n" for line in new)
    after = replaced(text, start, end, content)
    assert after.splitlines() == [*old[: start - 1], *(f"x{line}" for line in new), *old[end:]]


def replaced(text: str, start: int, end: int, content: str) -> str:
    """A text with other lines, in a folder of its own."""
    from tempfile import TemporaryDirectory

    with TemporaryDirectory() as folder:
        root = Path(folder).resolve()
        (root / "poem").write_text(text)
        return edit_lines(root, start, end, content)
