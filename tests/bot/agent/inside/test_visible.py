"""bot.agent.inside.visible: nothing that a person is shown moves a cursor, hides itself or runs the other way."""

import unicodedata

import pytest

from bot.agent.inside.visible import printed, visible


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain\ttext\nüñ 漢字 🙂", "plain\ttext\nüñ 漢字 🙂"),
        ("rm -rf /\x1b[2K\x1b[1Gls", "rm -rf /<U+001B>[2K<U+001B>[1Gls"),
        ("safe\rrm -rf /", "safe<U+000D>rm -rf /"),
        ("a\x08b\x7fc\x9bd", "a<U+0008>b<U+007F>c<U+009B>d"),
        ("if admin\u202e \u2066// nobody\u2069", "if admin<U+202E> <U+2066>// nobody<U+2069>"),
        ("pass\u200bword\ufeff\u00ad", "pass<U+200B>word<U+FEFF><U+00AD>"),
        ("x\U000e0069\U000e0067", "x<U+E0069><U+E0067>"),
        ("a\u2028b", "a<U+2028>b"),
    ],
)
def test_what_cannot_be_seen_stands_by_its_number(text: str, shown: str) -> None:
    """Everything else is left."""
    assert visible(text) == shown


def test_no_control_and_no_mark_of_direction_is_left() -> None:
    """Of all characters, by Unicode's own classes."""
    found = visible(
        "".join(map(chr, (*range(0x20), *range(0x7F, 0x2100), *range(0xFE00, 0x10000), *range(0xE0000, 0xE0080))))
    )
    left = {char for char in found if unicodedata.category(char) in ("Cc", "Zl", "Zp")} - {"\n", "\t"}
    turners = {
        char
        for char in found
        if unicodedata.bidirectional(char) in ("LRE", "RLE", "PDF", "LRO", "RLO", "LRI", "RLI", "FSI", "PDI")
    }
    assert (left, turners) == (set(), set())


def test_a_programs_colours_are_left_out() -> None:
    """Plain line ends, too; another sequence is seen."""
    assert printed("\x1b[1;31mred\x1b[0m\r\n\x1b]0;title\x07") == "red\n<U+001B>]0;title<U+0007>"
