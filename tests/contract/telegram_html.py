"""Telegram's reading of parse_mode=HTML: the visible text with its entities, or the error it answers.

Written after the "HTML style" section of the Bot API and the messages of tdlib's parser; offsets of errors are bytes,
offsets of entities are UTF-16 units, as there.
"""

import re
from dataclasses import dataclass, field
from typing import Any

TAGS = {
    "b": "bold",
    "strong": "bold",
    "i": "italic",
    "em": "italic",
    "u": "underline",
    "ins": "underline",
    "s": "strikethrough",
    "strike": "strikethrough",
    "del": "strikethrough",
    "tg-spoiler": "spoiler",
    "a": "text_link",
    "code": "code",
    "pre": "pre",
    "blockquote": "blockquote",
}
NAMED = {"&lt;": "<", "&gt;": ">", "&amp;": "&", "&quot;": '"'}
_TAG = re.compile(r"<(?P<end>/?)(?P<name>[a-zA-Z][a-zA-Z0-9-]*)(?P<rest>[^>]*)>")
_ATTRIBUTE = re.compile(r"""\s+(?P<name>[a-zA-Z-]+)(?:=(?:"(?P<value>[^"]*)"|'(?P<single>[^']*)'))?""")
_MENTION = re.compile(r"tg://user\?id=(?P<id>[0-9]+)")
_PIECE = re.compile(r"<|&(?:lt|gt|amp|quot|#[0-9]{1,7}|#x[0-9a-fA-F]{1,6});")


class ParseError(Exception):
    """Telegram cannot parse the text; the message is its description."""


@dataclass
class _Open:
    tag: str
    start: int
    attributes: dict[str, str]


@dataclass
class _Parser:
    text: str
    visible: str = ""
    units: int = 0  # of `visible`, in UTF-16
    entities: list[dict[str, Any]] = field(default_factory=list)
    open: list[_Open] = field(default_factory=list)

    def run(self) -> None:
        place = 0
        for match in _PIECE.finditer(self.text):
            if match.start() < place:
                continue
            self._show(self.text[place : match.start()])
            place = self._tag(match.start()) if match.group() == "<" else self._character(match)
        self._show(self.text[place:])
        if self.open:
            raise ParseError(f'can\'t find end tag corresponding to start tag "{self.open[-1].tag}"')

    def _show(self, text: str) -> None:
        self.visible += text
        self.units += utf16(text)

    def _character(self, match: re.Match[str]) -> int:
        name = match.group()
        if name in NAMED:
            self._show(NAMED[name])
        else:
            self._show(chr(int(name[3:-1], 16) if name[2] == "x" else int(name[2:-1])))
        return match.end()

    def _tag(self, start: int) -> int:
        match = _TAG.match(self.text, start)
        if match is None:
            raise ParseError(f'unsupported start tag "{self.text[start + 1 : start + 12]}" at {self._offset(start)}')
        name = match["name"].lower()
        if match["end"]:
            self._close(name, start)
        elif name not in TAGS:
            raise ParseError(f'unsupported start tag "{name}" at {self._offset(start)}')
        else:
            found = {item["name"]: item["value"] or item["single"] or "" for item in _ATTRIBUTE.finditer(match["rest"])}
            self.open.append(_Open(name, self.units, found))
        return match.end()

    def _close(self, name: str, start: int) -> None:
        if not self.open:
            raise ParseError(f"unexpected end tag at {self._offset(start)}")
        last = self.open.pop()
        if last.tag != name:
            where = self._offset(start)
            raise ParseError(f'unmatched end tag at {where}, expected "</{last.tag}>", found "</{name}>"')
        length = self.units - last.start
        if length:
            entity: dict[str, Any] = {"type": TAGS[name], "offset": last.start, "length": length}
            if name == "a":
                entity |= _linked(last.attributes.get("href", ""))
            self.entities.append(entity)

    def _offset(self, start: int) -> str:
        return f"byte offset {len(self.text[:start].encode())}"


def _linked(url: str) -> dict[str, Any]:
    """Where a link leads: to a page, or to a person, whom Telegram tells."""
    person = _MENTION.fullmatch(url)
    if person is None:
        return {"url": url}
    user = {"id": int(person["id"]), "is_bot": False, "first_name": "somebody"}
    return {"type": "text_mention", "user": user}


def utf16(text: str) -> int:
    """A text's length as Telegram counts it."""
    return len(text.encode("utf-16-le", "surrogatepass")) // 2


def parse(text: str) -> tuple[str, list[dict[str, Any]]]:
    """The visible text and its entities. Raises ParseError."""
    parser = _Parser(text)
    parser.run()
    return parser.visible, sorted(parser.entities, key=lambda entity: (entity["offset"], -entity["length"]))
