"""bot.platforms.telegram.markup: Markdown as Telegram's HTML."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.platforms.telegram.markup import as_html, cut, measure, plain
from tests.contract.telegram_html import parse, utf16

PIECES = [
    *"ab *_~`[]()#>-+\
<&;\"'/!|🐝é",
    "**",
    "```",
    "https://x.y",
    "__",
]
MARKDOWN = st.lists(st.sampled_from(PIECES)).map("".join)


@pytest.mark.parametrize(
    ("markdown", "shown"),
    [
        ("bees & <b>ants</b>", "bees &amp; &lt;b&gt;ants&lt;/b&gt;"),
        ("**bold** and __bold__", "<b>bold</b> and <b>bold</b>"),
        ("*slanted* and _slanted_", "<i>slanted</i> and <i>slanted</i>"),
        ("***both***", "<b><i>both</i></b>"),
        ("~~gone~~", "<s>gone</s>"),
        ("**bold with *slanted* inside**", "<b>bold with <i>slanted</i> inside</b>"),
        ("`a < b`", "<code>a &lt; b</code>"),
        ("``a ` b``", "<code>a ` b</code>"),
        ('[bees](https://x.y/a?b=1&c="2")', '<a href="https://x.y/a?b=1&amp;c=&quot;2&quot;">bees</a>'),
        ("[bees](javascript:alert(1))", "[bees](javascript:alert(1))"),
        ("# A heading #\ntext", "<b>A heading</b>\ntext"),
        ("- one\n* two\n  + three", "• one\n• two\n  • three"),
        ("> said\n> twice\nno", "<blockquote>said\ntwice</blockquote>\nno"),
        ("```python\nif a < b:\n    *x*\n```", '<pre><code class="language-python">if a &lt; b:\n    *x*</code></pre>'),
        ("```\nno language\n```\nafter", "<pre>no language</pre>\nafter"),
        ("```\nnever closed **a**", "<pre>never closed **a**</pre>"),
        ("~~~\n```\n~~~", "<pre>```</pre>"),
        (r"\*not slanted\*", "*not slanted*"),
    ],
)
def test_marks_become_tags(markdown: str, shown: str) -> None:
    """Each mark of Markdown that Telegram can show, and nothing unescaped."""
    assert as_html(markdown) == shown


@pytest.mark.parametrize(
    "text",
    [
        "2 * 3 * 4",
        "snake_case_name and more_of_it",
        "**never closed",
        "a ` b",
        "** bold **",
        "f(*args, **kwargs)",
        "_",
        "-",
    ],
)
def test_what_only_looks_like_a_mark_stays(text: str) -> None:
    """Arithmetic, names of variables and marks without an end are shown as they were written."""
    assert as_html(text) == text


@given(MARKDOWN | st.text())
def test_it_is_always_html_that_telegram_takes(markdown: str) -> None:
    """Whatever a model writes parses, and is shown no longer than it was written."""
    visible, _ = parse(as_html(markdown))
    assert utf16(visible) <= measure(plain(markdown))


@given(st.text(st.sampled_from("ab 🐝é<>&\n"), max_size=60))
def test_what_has_no_marks_is_shown_as_it_is(text: str) -> None:
    """Nothing is lost on the way through HTML; a line that begins with > is a quotation."""
    if not any(line.lstrip().startswith(">") for line in text.split("\n")):
        assert parse(as_html(text))[0] == text


@given(st.text())
def test_a_text_is_measured_in_utf16(text: str) -> None:
    """As Telegram counts it."""
    assert measure(text) == utf16(text)


@given(st.text(), st.integers(0, 20))
def test_a_cut_text_fits(text: str, units: int) -> None:
    """It is a beginning of the text, and no more of it is lost than has to be."""
    short = cut(text, units)
    assert text.startswith(short)
    assert measure(short) <= units
    assert short == text or measure(text[: len(short) + 1]) > units or measure(short) >= units - 1


def test_what_cannot_be_sent_is_replaced() -> None:
    """Half of a surrogate pair and NUL are no text for Telegram."""
    assert plain("a\ud83db\x00c") == "a\ufffdb\ufffdc"


@pytest.mark.timeout(150)
@pytest.mark.parametrize(
    "marks",
    ["*", "**a", "`", "`a", "_a ", " *a", "**a ", "[", "~~", "[a](", "[a](https://", "> ", "``` `", "a*b", "***a"],
)
def test_marks_without_an_end_take_no_time(marks: str) -> None:
    """Each kind is searched for in vain once: work that grew with the square of the length would not end in time."""
    visible, _ = parse(as_html("x " + marks * (200_000 // len(marks))))
    assert visible
