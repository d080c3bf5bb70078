"""tests.contract.telegram_html: Telegram's own reading of HTML."""

import pytest

from tests.contract.telegram_html import ParseError, parse


def test_tags_become_entities() -> None:
    """Offsets and lengths are UTF-16 units of the visible text."""
    visible, found = parse('🐝<b>bees</b> &amp; <a href="https://x.y">ants</a> &#x2713; &copy;')
    assert visible == "🐝bees & ants \u2713 &copy;"
    assert found == [
        {"type": "bold", "offset": 2, "length": 4},
        {"type": "text_link", "offset": 9, "length": 4, "url": "https://x.y"},
    ]


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("<b>a", 'can\'t find end tag corresponding to start tag "b"'),
        ("<b>a</i>", 'unmatched end tag at byte offset 4, expected "</b>", found "</i>"'),
        ("é<p>a</p>", 'unsupported start tag "p" at byte offset 2'),
        ("a < b", 'unsupported start tag " b" at byte offset 2'),
        ("a</b>", "unexpected end tag at byte offset 1"),
    ],
)
def test_what_telegram_refuses(text: str, error: str) -> None:
    """Its own descriptions."""
    with pytest.raises(ParseError) as caught:
        parse(text)
    assert str(caught.value) == error
