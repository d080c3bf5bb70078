"""bot.http.web.markdown: Markdown as models write it, as HTML that is safe. test_page_in_chromium.py shows it."""

import re
from html.parser import HTMLParser

import pytest

from bot.http.web import markdown
from bot.http.web.markdown import ATTRIBUTES, MAX_MARKDOWN_CHARS, TAGS, blocks
from tests.bot.conftest import Heed
from tests.bot.http.web.injections import INJECTIONS


def html(text: str) -> str:
    """The HTML of a whole text, without the line ends between tags."""
    return re.sub(r">\n+", ">", "".join(block.html for block in blocks(text))).strip()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("# Title", "<h3>Title</h3>"),
        ("##### Deep", "<h6>Deep</h6>"),
        ("*it* and **bold** and ~~gone~~", "<p><em>it</em> and <strong>bold</strong> and <s>gone</s></p>"),
        ("one\ntwo", "<p>one<br>two</p>"),
        ("> said", "<blockquote><p>said</p></blockquote>"),
        ("- a\n  - b", "<ul><li>a\n<ul><li>b</li></ul></li></ul>"),
        ("3. c", '<ol start="3"><li>c</li></ol>'),
        ("text\n-", "<p>text<br>-</p>"),
        ("    four blanks", "<p>four blanks</p>"),
        ("`a < b`", "<p><code>a &lt; b</code></p>"),
        ("see main.py, a@b.org", "<p>see main.py, a@b.org</p>"),
        ("5 < 6 & <b>no</b>", "<p>5 &lt; 6 &amp; &lt;b&gt;no&lt;/b&gt;</p>"),
    ],
)
def test_markdown_is_formatted(text: str, expected: str) -> None:
    """Headings below the page's own, emphasis, lists, quotes and code; tags in a text stay text."""
    assert html(text) == expected


@pytest.mark.parametrize("text", ["[w](https://a.example/x)", "<https://a.example/x>", "https://a.example/x"])
def test_links_say_where_they_lead(text: str) -> None:
    """Links and bare addresses open elsewhere, tell no one where they were, and carry their address as title."""
    found = html(text)
    for part in ('href="https://a.example/x"', 'title="https://a.example/x"', 'rel="noopener noreferrer"', "_blank"):
        assert part in found


@pytest.mark.parametrize(
    "address", ["javascript:alert(1)", "data:text/html,x", "/v1/users", "//a.example", "vbscript:x"]
)
def test_other_addresses_are_no_links(address: str) -> None:
    """Only addresses of the web and of mail become links; an image is a link, too."""
    assert "<a" not in html(f"[w]({address}) ![w]({address}) <{address}>")
    assert html("![w](https://a.example/x.png)").startswith('<p><a href="https://a.example/x.png"')


@pytest.mark.parametrize(
    "formula",
    [
        r"$a_1 * b_2 * c$",
        r"\(x_1 * y_1\)",
        r"\[ x_1 * y \]",
        r"$$x_1 * y_2 * z$$",
        "$$\na_1\n- b\n\n+ c\n$$",
        "\\[\n# a\n\\]",
    ],
)
def test_math_is_left_as_written(formula: str) -> None:
    """No part of a formula becomes emphasis, a list or an escaped sign."""
    assert html(formula) == f'<p><span class="math">{formula}</span></p>'


def test_money_is_no_math() -> None:
    """Two prices in a sentence are no formula."""
    assert html("$5 and *now* $6") == "<p>$5 and <em>now</em> $6</p>"


def test_tables_are_aligned_by_class() -> None:
    """A table lies in a box of its own that can scroll, and has no style that the policy would refuse."""
    found = html("| a | b |\n|:-:|--:|\n| 1 | 2 |")
    assert found.startswith('<div class="table"><table>')
    assert '<td class="center">1</td><td class="right">2</td>' in found
    assert "style" not in found


def test_code_is_coloured_where_its_language_is_known() -> None:
    """Python has marked parts; code of another language, and very long code, is plain."""
    assert '<code class="language-python"><span class="k">def</span>' in html("```python\ndef f(): pass\n```")
    assert "<span" not in html("```mermaid\ngraph\n```")
    assert "<span" not in html(f"```python\n{'x = 1 ' * 1500}\n```")


def test_blocks_have_their_lines() -> None:
    """A page that has shown the first blocks sends only the text from the last one's line on."""
    assert [block.line for block in blocks("# a\n\nb\nb\n\n- c\n\n```\nd\n")] == [0, 2, 5, 7]


class Tags(HTMLParser):
    """Collects the tags of some HTML with their attributes."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Keep one."""
        self.found.append((tag, dict(attrs)))


@pytest.mark.parametrize("text", INJECTIONS)
def test_nothing_but_named_tags_and_attributes_comes_out(text: str) -> None:
    """Whatever is written: only tags and attributes of the list, and only addresses of the web and of mail."""
    for tag, attributes in Tags(html(text)).found:
        assert tag in TAGS
        assert set(attributes) <= {"class"} | ATTRIBUTES.get(tag, set()) | ({"rel", "target"} if tag == "a" else set())
        assert re.match(r"https?://|mailto:|$", attributes.get("href") or "")


def test_a_very_long_text_is_shown_as_it_is() -> None:
    """Formatting may take time by the length squared."""
    assert blocks("[" * (MAX_MARKDOWN_CHARS + 1))[0].html.startswith("<pre>[[")
    assert blocks("http://a" * (markdown.MAX_LINKS + 1))[0].html.startswith("<pre>http")


async def test_several_texts_are_rendered_by_one_call(heed: Heed) -> None:
    """Each text has its blocks, in the order of the texts."""
    status, given = await heed.post("/v1/markdown", {"texts": ["# a", "", "b\n\nc"]})
    assert status == 200
    assert [[block["line"] for block in text] for text in given["data"]] == [[0], [], [0, 2]]
