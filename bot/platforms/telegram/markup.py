"""The Markdown that models write, as the HTML that Telegram takes.

Invariants: the result is valid Telegram HTML anything that goes in (a mark without its end stays as it was written),
what is shown is never longer than what was written, and nothing but marks disappears. `measure` is Telegram's own
ruler.
"""

import html
import re

TEXT_UNITS = 4096
CAPTION_UNITS = 1024

_FENCE = re.compile(r" {0,3}(?P<fence>`{3,}|~{3,})[ \t]*(?P<language>[\w+#.-]*)[^`\n]*")
_HEADING = re.compile(r" {0,3}#{1,6}[ \t]+(?P<text>.*?)[ \t]*#*[ \t]*")
_BULLET = re.compile(r"(?P<indent>[ \t]*)[*+-](?P<blank>[ \t]+)(?=\S)")
_QUOTE = re.compile(r" {0,3}>[ \t]?")
_SPECIAL = re.compile(r"[`*_~\[\\]")
_LINK = re.compile(r"\[(?P<label>[^\[\]\n]+)\]\((?P<url>https?://[^\s()<>]+)\)")
_MARKS = (("***", "bi"), ("**", "b"), ("__", "b"), ("~~", "s"), ("*", "i"), ("_", "i"))
_ESCAPABLE = frozenset("\\`*_~[]()#+-.!<>|{}")
_UNSENDABLE = re.compile("[\x00\ud800-\udfff]")


def measure(text: str) -> int:
    """Return a text's length in UTF-16 units, as Telegram counts it."""
    return len(text) + sum(char > "\uffff" for char in text)


def cut(text: str, units: int) -> str:
    """Return the beginning of a text that fits."""
    while measure(text) > units:
        text = text[: len(text) - max(1, (measure(text) - units) // 2)]
    return text


def plain(text: str) -> str:
    """Return a text that can be sent: no half of a surrogate pair, no NUL."""
    return _UNSENDABLE.sub("\ufffd", text)


def as_html(text: str) -> str:
    """Markdown as Telegram's HTML."""
    lines = plain(text).split("\n")
    blocks: list[str] = []
    place = 0
    while place < len(lines):
        fence = _FENCE.fullmatch(lines[place])
        if fence:
            block, place = _code_block(lines, place, fence)
        elif _QUOTE.match(lines[place]):
            block, place = _quote(lines, place)
        else:
            block, place = _line(lines[place]), place + 1
        blocks.append(block)
    return "\n".join(blocks)


def _code_block(lines: list[str], start: int, fence: re.Match[str]) -> tuple[str, int]:
    mark = fence["fence"]
    end = start + 1
    while end < len(lines) and not _closes(lines[end], mark):
        end += 1
    code = _escape("\n".join(lines[start + 1 : end]))
    language = html.escape(fence["language"])
    opening = f'<pre><code class="language-{language}">' if language else "<pre>"
    closing = "</code></pre>" if language else "</pre>"
    return (f"{opening}{code}{closing}" if code.strip() else ""), end + 1


def _closes(line: str, mark: str) -> bool:
    line = line.strip()
    return len(line) >= len(mark) and not line.strip(mark[0])


def _quote(lines: list[str], start: int) -> tuple[str, int]:
    end = start
    quoted = []
    while end < len(lines) and (mark := _QUOTE.match(lines[end])):
        quoted.append(_line(lines[end][mark.end() :]))
        end += 1
    inner = "\n".join(quoted)
    return (f"<blockquote>{inner}</blockquote>" if inner.strip() else ""), end


def _line(line: str) -> str:
    heading = _HEADING.fullmatch(line)
    if heading and heading["text"]:
        return f"<b>{_inline(heading['text'])}</b>"
    bullet = _BULLET.match(line)
    if bullet:
        return f"{bullet['indent']}•{bullet['blank']}{_inline(line[bullet.end() :])}"
    return _inline(line)


def _inline(text: str) -> str:
    return _Inline(text).shown()


class _Inline:
    """The marks inside a line. Each mark is searched for to the end in vain once only, so that no text takes long."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._unclosed: set[str] = set()

    def shown(self) -> str:
        shown: list[str] = []
        place = 0
        while found := _SPECIAL.search(self._text, place):
            shown.append(_escape(self._text[place : found.start()]))
            piece, place = self._special(found.start())
            shown.append(piece)
        return "".join([*shown, _escape(self._text[place:])])

    def _special(self, start: int) -> tuple[str, int]:
        """Return what the mark at `start` makes, and its end; the mark itself if it makes nothing."""
        text, char = self._text, self._text[start]
        if char == "\\" and text[start + 1 : start + 2] and text[start + 1] in _ESCAPABLE:
            return _escape(text[start + 1]), start + 2
        if char == "`":
            return self._code(start)
        if char == "[" and (link := _LINK.match(text, start)):
            return f'<a href="{html.escape(link["url"])}">{_escape(link["label"])}</a>', link.end()
        for mark, tags in _MARKS:
            if text.startswith(mark, start):
                return self._marked(start, mark, tags)
        return _escape(char), start + 1

    def _code(self, start: int) -> tuple[str, int]:
        inside = self._run_end(start)
        mark = self._text[start:inside]
        end = self._text.find(mark, inside)
        if end < 0 or not self._text[inside:end].strip():
            return mark, inside
        return f"<code>{_escape(self._text[inside:end])}</code>", end + len(mark)

    def _marked(self, start: int, mark: str, tags: str) -> tuple[str, int]:
        inside = start + len(mark)
        is_word = mark[0] == "_" and self._text[max(0, start - 1) : start].isalnum()
        end = -1 if is_word or self._text[inside : inside + 1].isspace() else self._end_of(inside, mark)
        if end < 0:
            after = self._run_end(start)
            return self._text[start:after], after
        opening = "".join(f"<{tag}>" for tag in tags)
        closing = "".join(f"</{tag}>" for tag in reversed(tags))
        return f"{opening}{_inline(self._text[inside:end])}{closing}", end + len(mark)

    def _end_of(self, inside: int, mark: str) -> int:
        """Return the position of the closing mark: behind a visible character, not in a longer run or a word; -1 if
        nowhere.
        """
        text = self._text
        end = -1 if mark in self._unclosed else text.find(mark, inside + 1)
        while end >= 0:
            after = text[end + len(mark) : end + len(mark) + 1]
            is_longer = len(mark) == 1 and (after == mark or text[end - 1] == mark)
            is_word = mark[0] == "_" and after.isalnum()
            if not (is_longer or is_word or text[end - 1].isspace()):
                return end
            end = text.find(mark, end + 1 + is_longer)
        self._unclosed.add(mark)
        return -1

    def _run_end(self, start: int) -> int:
        """Return the end of the run of the character at `start`."""
        end = start
        while self._text[end : end + 1] == self._text[start]:
            end += 1
        return end


def _escape(text: str) -> str:
    return html.escape(text, quote=False)
