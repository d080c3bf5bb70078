"""bot.agent.inside.conflicts: the marks of git in a file."""

import pytest

from bot.agent.inside.conflicts import about, about_change, begun_at

CONFLICT = "<<<<<<< HEAD\nours\n=======\ntheirs\n>>>>>>> other\n"


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        (CONFLICT, [1]),
        (f"x\n{CONFLICT}y\n{CONFLICT}", [2, 8]),
        (CONFLICT.replace("\n", "\r\n"), [1]),
        ("<<<<<<< HEAD\nours\n||||||| 1234\nbase\n=======\ntheirs\n>>>>>>> other\n", [1]),
        ("Title\n=======\n", []),
        ("  <<<<<<< HEAD\n=======\n>>>>>>> other\n", []),
        ("<<<<<<< HEAD\n>>>>>>> other\n", []),
        ("<<<<<<<< eight\n=======\n>>>>>>> other\n", []),
        ("", []),
    ],
)
def test_all_three_marks_make_a_conflict(text: str, lines: list[int]) -> None:
    """At the beginning of lines, in their order."""
    assert begun_at(text) == lines


def test_a_file_that_is_read_says_so() -> None:
    """With its lines, the first of them where there are many."""
    assert about("a.txt", "one\n") == ""
    assert about("a.txt", CONFLICT).startswith("a.txt has 1 unresolved conflict of git (line 1): both sides")
    assert "8 unresolved conflicts of git (lines 1, 6, 11, 16, 21 ...)" in about("a.txt", CONFLICT * 8)


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        ("one\n", "two\n", ""),
        (CONFLICT, "both\n", "a has 1 unresolved conflict of git (line 1); after this change there are none left."),
        (
            CONFLICT * 2,
            CONFLICT,
            "a has 2 unresolved conflicts of git (lines 1, 6); after this change there is "
            "1 unresolved conflict of git (line 1) left.",
        ),
        ("one\n", CONFLICT, "With this change a has 1 unresolved conflict of git (line 1)."),
    ],
)
def test_a_change_says_what_it_leaves(before: str, after: str, said: str) -> None:
    """Also one that brings a conflict in."""
    assert about_change("a", before, after) == said
