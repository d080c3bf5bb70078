"""bot.messaging.splitting: every part fits, nothing is lost, code stays code."""

import re
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.messaging.splitting import MIN_LIMIT, split

WORDS = st.text(st.characters(exclude_categories=["Cs"]), max_size=300)
PIECES = st.sampled_from(
    ["word ", "a" * 50, "\n\n", "\n", ". ", "```\n", "```py\n", "~~~\n", "🙂", "e\u0301", "\t", "  x"]
)
TEXTS = st.one_of(WORDS, st.lists(PIECES, max_size=60).map("".join))


def utf16_units(text: str) -> int:
    """Return the number of UTF-16 code units of a text, as one platform may count."""
    return len(text) + sum(char > "\uffff" for char in text)


def inked(text: str) -> str:
    """A text without blanks and code fences."""
    return re.sub(r"\s|^ {0,3}(`{3,}|~{3,})(py)?$", "", text, flags=re.MULTILINE)


@given(TEXTS, st.integers(MIN_LIMIT, 200), st.sampled_from([len, utf16_units]))
def test_every_part_fits_and_says_something(text: str, limit: int, measure: Callable[[str], int]) -> None:
    """However the text is made, each part is within the limit and none is blank."""
    for part in split(text, limit, measure):
        assert measure(part) <= limit
        assert part.strip()


@given(st.text(st.sampled_from("ab .\n🙂\u0301\u200d"), max_size=400), st.integers(MIN_LIMIT, 80))
def test_nothing_is_lost_but_blanks(text: str, limit: int) -> None:
    """Put together again without blanks, the parts are the text."""
    assert re.sub(r"\s", "", "".join(split(text, limit))) == re.sub(r"\s", "", text)


@given(st.lists(st.sampled_from(["x = 1", "    y", "", "long line " * 6]), min_size=1, max_size=60))
def test_every_part_of_a_code_block_is_a_code_block(lines: list[str]) -> None:
    """A cut inside a code block closes it and opens it again with its language."""
    parts = split("Look:\n```py\n" + "\n".join(lines) + "\n```\nDone.", 100)
    for part in parts:
        assert len(re.findall("^```", part, re.MULTILINE)) % 2 == 0
    assert inked("\n".join(parts)) == inked("Look:\n" + "\n".join(lines) + "\nDone.")


def test_indentation_of_code_survives_the_seam() -> None:
    """Only the line end is dropped where code is cut."""
    parts = split("```py\n" + "if x:\n    y = 1\n" * 6 + "```", 60)
    assert all(part.startswith("```py\n") and part.endswith("\n```") for part in parts)
    assert any("\n    y" in part for part in parts)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a" * 20 + "\n\n" + "b" * 20, ["a" * 20, "b" * 20]),
        ("a" * 20 + "\n" + "b" * 20, ["a" * 20, "b" * 20]),
        ("a " * 10 + "b. " + "c " * 10, ["a " * 10 + "b.", ("c " * 10).strip()]),
        ("  " + "0" * 31, ["0" * 31]),
        (" " * 40 + "word", ["word"]),
        ("word " * 10, ["word word word word word word", "word word word word"]),
        ("a" * 40, ["a" * 32, "a" * 8]),
        ("short", ["short"]),
        (" \n ", []),
        ("", []),
    ],
)
def test_a_cut_is_made_at_the_largest_unit_that_fits(text: str, expected: list[str]) -> None:
    """Paragraph before line before sentence before word before anywhere."""
    assert split(text, 32) == expected


def test_a_character_is_not_torn_apart() -> None:
    """A letter keeps its accent, and a joined emoji stays one."""
    parts = split("e\u0301" * 40, 33)
    assert not any(part.startswith("\u0301") for part in parts)


def test_an_unclosed_code_block_is_closed() -> None:
    """An answer that ended inside a code block is shown as one."""
    assert split("```py\nx = 1", 100) == ["```py\nx = 1\n```"]


def test_a_huge_text_is_cut_quickly() -> None:
    """One word of a million letters comes out whole."""
    assert sum(map(len, split("a" * 1_000_000, 2000))) == 1_000_000


def test_surrogate_pairs_count_twice() -> None:
    """Telegram's limit is in UTF-16 units."""
    assert [utf16_units(part) for part in split("🙂" * 40, 32, utf16_units)] == [32, 32, 16]


def test_a_tiny_limit_is_refused() -> None:
    """Nothing sensible fits in a few units."""
    with pytest.raises(ValueError, match="too small"):
        split("text", 3)
