"""bot.cli.wrapping: words stay whole at the end of a line."""

import re

from hypothesis import given
from hypothesis import strategies as st

from bot.cli.wrapping import WordWrap


def wrapped(pieces: list[str], width: int = 10, column: int = 0) -> str:
    """All that comes out."""
    wrap = WordWrap(width, column)
    return "".join([*map(wrap.feed, pieces), wrap.rest()])


def test_a_word_that_does_not_fit_begins_a_line() -> None:
    """Also if it comes in parts, and behind what stands on the line already."""
    assert wrapped(["the bees b", "uzz", " loudly"]) == "the bees\nbuzz\nloudly"
    assert wrapped(["buzz"], column=6) == "buzz"
    assert wrapped(["buzzed"], column=6) == "\nbuzzed"
    assert wrapped(["a\n  b\n\nc "]) == "a\n  b\n\nc "
    assert wrapped(["ab 蜜蜂蜜蜂"]) == "ab\n蜜蜂蜜蜂"  # two cells each


def test_a_word_is_shown_when_it_has_ended() -> None:
    """Nothing is held longer than its word."""
    wrap = WordWrap(80)
    assert wrap.feed("the bees bu") == "the bees"
    assert wrap.feed("zz loud") == " buzz"
    assert wrap.rest() == " loud"


@given(st.lists(st.text("ab \n", max_size=12)), st.integers(5, 20))
def test_nothing_is_lost(pieces: list[str], width: int) -> None:
    """However a text is cut: the same words and lines come out, and no line is longer but by one word."""
    text = "".join(pieces)
    shown = wrapped(pieces, width)
    assert shown.split() == text.split()
    assert shown == wrapped([text], width)
    for line in shown.split("\n"):
        assert len(line.rstrip()) <= width or re.fullmatch(r" *\S+ *", line)
