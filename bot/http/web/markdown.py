"""Markdown as models write it, as HTML that is safe to show.

Two walls: markdown-it makes tags of Markdown alone (tags in the text stay text), then nh3 lets through only what is
named here: no image, no style, no id, no address but of the web or of mail. Math stays as it was written. Invariant:
text is cut into its top-level blocks, so that a page can show a growing answer and send only its last block again.
"""

import asyncio
import html
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Literal

import nh3
from aiohttp import web
from linkify_it import LinkifyIt
from markdown_it import MarkdownIt
from markdown_it.renderer import RendererHTML
from markdown_it.rules_block import StateBlock
from markdown_it.rules_inline import StateInline
from markdown_it.token import Token
from markdown_it.utils import EnvType, OptionsDict
from pydantic import Field, StringConstraints
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import get_lexer_by_name
from pygments.token import STANDARD_TYPES

from bot.http.protocol import bodies
from bot.http.protocol.openapi import gives
from bot.http.protocol.responses import JsonResponse

MAX_TEXTS, MAX_CHARS = 200, 200_000  # of one call, and of each of its texts
MAX_MARKDOWN_CHARS = 20_000  # of a text; a longer one is shown as it is: some take time by their length squared
MAX_MATH_LINES = 30
MAX_LINKS = 300  # of a text; one with more is shown as it is, too
MAX_CODE_CHARS = 8000  # of a code block that is coloured
# Languages that are coloured: common ones, whose rules are known to end soon on any text.
LANGUAGES = frozenset((
    "bash", "c", "cpp", "csharp", "css", "diff", "dockerfile", "go", "html", "ini", "java", "javascript", "js", "json",
    "kotlin", "lua", "makefile", "php", "powershell", "py", "python", "r", "ruby", "rust", "scala", "sh", "shell",
    "sql", "swift", "toml", "ts", "typescript", "xml", "yaml", "yml",
))  # fmt: skip
TAGS = frozenset((
    "a", "blockquote", "br", "code", "div", "em", "h3", "h4", "h5", "h6", "hr", "li", "ol", "p", "pre", "s", "span",
    "strong", "table", "tbody", "td", "th", "thead", "tr", "ul",
))  # fmt: skip
ATTRIBUTES = {"a": {"href", "title"}, "ol": {"start"}}
SIDES = {"left", "center", "right"}
CLASSES = {
    "code": {f"language-{name}" for name in LANGUAGES},
    "div": {"table"},
    "span": {"math", *filter(None, STANDARD_TYPES.values())},
    "th": SIDES,
    "td": SIDES,
}
_SAFE_ADDRESS = re.compile(r"https?://|mailto:", re.IGNORECASE)
_MATH = re.compile(
    r"\$\$[^$]{1,2000}\$\$|\\\(.{1,1000}?\\\)|\\\[.{1,2000}?\\\]"
    r"|\$(?=[^\s$])[^$\n]{0,500}[^\s$]\$(?!\d)",  # "$5 and $6" is money: its second sign has a blank before it
    re.DOTALL,
)
_MATH_BLOCK = {"$$": "$$", "\\[": "\\]"}
_FIRST_HEADING = 2  # the page itself has headings of the levels 1 and 2
_FORMATTER = HtmlFormatter(nowrap=True)
_CLEANER = nh3.Cleaner(
    tags=set(TAGS),
    attributes=ATTRIBUTES,
    allowed_classes=CLASSES,
    url_schemes={"http", "https", "mailto"},
    url_relative="deny",
    set_tag_attribute_values={"a": {"target": "_blank"}},
    link_rel="noopener noreferrer",
)


@dataclass(frozen=True)
class Block:
    """One top-level block: the line of the text that it begins on, and its HTML."""

    line: int
    html: str


class RenderedBlock(JsonResponse):
    """One top-level block of a Markdown text: the line that it begins on, from 0, and its HTML."""

    line: int
    html: str


class Rendered(JsonResponse):
    """Markdown texts as HTML that is safe to show, each as its blocks."""

    object: Literal["list"]
    data: list[list[RenderedBlock]]


class MarkdownBody(bodies.Body):
    """`POST /v1/markdown`."""

    texts: Annotated[list[Annotated[str, StringConstraints(max_length=MAX_CHARS)]], Field(max_length=MAX_TEXTS)]


@gives(Rendered, takes=MarkdownBody)
async def render(request: web.Request) -> web.Response:
    """Return Markdown texts as blocks of safe HTML, for the page (`POST /v1/markdown`)."""
    body = await bodies.read(request, MarkdownBody)
    rendered = await asyncio.to_thread(lambda: [blocks(text) for text in body.texts])
    data = [[RenderedBlock(line=block.line, html=block.html) for block in text] for text in rendered]
    return web.json_response(Rendered(object="list", data=data))


def blocks(text: str) -> list[Block]:
    """Return the top-level blocks of a Markdown text, in order; a very long text is one block as it is."""
    if len(text) > MAX_MARKDOWN_CHARS or text.count("://") > MAX_LINKS:
        return [Block(0, f"<pre>{html.escape(text)}</pre>")]
    env: EnvType = {}
    found, group = list[Block](), list[Token]()
    for token in _MARKDOWN.parse(text, env):
        group.append(token)
        if token.level == 0 and token.nesting <= 0:
            clean = _CLEANER.clean(_MARKDOWN.renderer.render(group, _MARKDOWN.options, env))
            found.append(Block(group[0].map[0] if group[0].map else 0, clean))
            group = []
    return found


def _math(state: StateInline, silent: bool) -> bool:
    """Take a formula as it is written: in it, `_`, `*` and `\\` mean something else."""
    found = _MATH.match(state.src, state.pos) if state.src[state.pos] in "$\\" else None
    if found is None:
        return False
    if not silent:
        state.push("math", "", 0).content = found[0]
    state.pos = found.end()
    return True


def _math_block(state: StateBlock, first: int, end: int, silent: bool) -> bool:
    """Take a formula of several lines as one paragraph, also if its lines begin as a list does."""
    opening = state.getLines(first, first + 1, state.blkIndent, False).strip()
    close = _MATH_BLOCK.get(opening[:2])
    if close is None:
        return False
    limit = min(end, first + MAX_MATH_LINES)
    lines = [state.getLines(line, line + 1, state.blkIndent, False).strip() for line in range(first, limit)]
    last = next((number for number, line in enumerate(lines) if number and line.endswith(close)), None)
    if last is None:
        return False
    if not silent:
        state.line = first + last + 1
        token = state.push("math_block", "", 0)
        token.map, token.content = [first, state.line], "\n".join(lines[: last + 1])
    return True


class _Renderer(RendererHTML):
    """HTML of the tokens whose tags differ from markdown-it's."""

    def math(self, tokens: list[Token], at: int, _options: OptionsDict, _env: EnvType) -> str:
        """Show a formula as it is written."""
        return f'<span class="math">{html.escape(tokens[at].content)}</span>'

    def math_block(self, tokens: list[Token], at: int, options: OptionsDict, env: EnvType) -> str:
        """Show a formula of several lines as it is written."""
        return f"<p>{self.math(tokens, at, options, env)}</p>"

    def image(self, tokens: Sequence[Token], at: int, _options: OptionsDict, _env: EnvType) -> str:
        """Show an image as a link: the page loads nothing from elsewhere."""
        address = html.escape(str(tokens[at].attrGet("src") or ""))
        return f'<a href="{address}">{html.escape(tokens[at].content or address)}</a>'

    def link_open(self, tokens: list[Token], at: int, options: OptionsDict, env: EnvType) -> str:
        """Show with every link the address that it leads to."""
        tokens[at].attrSet("title", str(tokens[at].attrGet("href") or ""))
        return self.renderToken(tokens, at, options, env)

    def heading_open(self, tokens: list[Token], at: int, options: OptionsDict, env: EnvType) -> str:
        """Put an answer's headings below the page's own."""
        tokens[at].tag = f"h{min(int(tokens[at].tag[1]) + _FIRST_HEADING, 6)}"
        return self.renderToken(tokens, at, options, env)

    heading_close = heading_open

    def table_open(self, *_: object) -> str:
        """Let a wide table scroll by itself."""
        return '<div class="table"><table>'

    def table_close(self, *_: object) -> str:
        """End a table."""
        return "</table></div>"

    def th_open(self, tokens: list[Token], at: int, options: OptionsDict, env: EnvType) -> str:
        """Align a cell by a class: the page's policy lets no style in."""
        side = str(tokens[at].attrs.pop("style", "")).partition(":")[2]
        if side:
            tokens[at].attrSet("class", side)
        return self.renderToken(tokens, at, options, env)

    td_open = th_open


def _coloured(code: str, language: str, _: str) -> str:
    """Return code as HTML with its parts marked, or an empty string to show it plain."""
    name = language.lower()
    if name not in LANGUAGES or len(code) > MAX_CODE_CHARS:
        return ""
    return str(highlight(code, get_lexer_by_name(name, stripnl=False), _FORMATTER))


def _markdown() -> MarkdownIt:
    options = {"html": False, "linkify": True, "breaks": True, "highlight": _coloured}
    made = MarkdownIt("commonmark", options, renderer_cls=_Renderer)
    made.enable(["table", "strikethrough", "linkify"])
    made.disable(["code", "lheading"])  # indented text is no code, and "text\n-" is the beginning of a list
    made.inline.ruler.before("escape", "math", _math)
    made.block.ruler.before("fence", "math_block", _math_block, {"alt": ["paragraph", "blockquote", "list"]})
    made.validateLink = lambda url: _SAFE_ADDRESS.match(url) is not None  # type: ignore[method-assign]
    made.linkify = LinkifyIt(options={"fuzzy_link": False, "fuzzy_email": False})  # main.py is no address
    return made


_MARKDOWN = _markdown()
