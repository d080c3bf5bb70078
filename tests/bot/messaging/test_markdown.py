"""bot.messaging.markdown: what heed says is shown letter for letter, on channels that show Markdown."""

import html
import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from bot.messaging.markdown import literal, table
from bot.platforms.telegram.markup import as_html, plain

MARKS = "*_~`#>|[]()<>-+\\ \n\tab1."


def shown(markdown: str) -> str:
    """The letters that Telegram shows."""
    return html.unescape(re.sub(r"<[^<>]*>", "", as_html(markdown)))


@given(st.text(MARKS, max_size=60) | st.text(max_size=60))
@example("2*3*4, __init__.py")
@example("- one\n- two\n# three\n> four\n```\nfive\n```")
@example("see https://example.org/a_b_c*d and *that*")
def test_what_a_person_wrote_comes_back_as_it_was(text: str) -> None:
    """Through Telegram's HTML: nothing is bold, nothing is gone."""
    assert shown(literal(text)) == plain(text)
    assert not re.search(r"<(b|i|s|code|pre|blockquote)>", as_html(literal(text)))


def test_an_address_can_still_be_opened() -> None:
    """A mark inside an address belongs to it."""
    assert literal("see https://example.org/a_b, __ok__") == r"see https://example.org/a_b, \_\_ok\_\_"


@pytest.mark.parametrize("text", ["a   b\nc   d", "x ``` y", "*_~"])
def test_a_table_is_a_block_of_its_lines(text: str) -> None:
    """Letters of one width, and no mark inside ends it."""
    assert as_html(table(text)) == f"<pre>{html.escape(text, quote=False)}</pre>"
