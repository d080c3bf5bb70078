"""heed's own words as Markdown: channels show Markdown, which is what models write.

Invariant: what a person wrote and heed says again ("Noted: 2*3, __init__.py") is shown letter for letter; an address
stays one that can be opened.
"""

import re

# An address ends before what could be a mark: only within a word is an underscore certain to be none.
_ADDRESS = re.compile(r"https?://(?:[^\W_]|[./?=&%:@!,;+#-]|(?<=[^\W_])_(?=[^\W_]))+")
_MARKS = re.compile(r"[\\`*_~\[\]|<>#]")
_LINE_MARKS = re.compile(r"^([ \t]*)([-+])(?=[ \t])", re.MULTILINE)
_FENCE = re.compile(r"`{3,}")


def literal(text: str) -> str:
    """Return Markdown that shows a text as it is."""
    shown: list[str] = []
    place = 0
    for address in _ADDRESS.finditer(text):
        shown += [_escaped(text[place : address.start()]), address[0]]
        place = address.end()
    return _LINE_MARKS.sub(r"\1\\\2", "".join([*shown, _escaped(text[place:])]))


def table(text: str) -> str:
    """Return Markdown that shows lines in columns: a block of letters that are all as wide."""
    fence = "`" * max([3, *(len(found) + 1 for found in _FENCE.findall(text))])
    return f"{fence}\n{text}\n{fence}"


def _escaped(text: str) -> str:
    return _MARKS.sub(r"\\\g<0>", text)
