"""Cuts a text into parts that a platform takes: at a paragraph, a line, a sentence, a word, and only then anywhere.

Invariants: every part fits; nothing is lost but the blanks at the seams; a code block that is cut is closed in one part
and opened again, with its language, in the next, so that every part is balanced by itself.
"""

import bisect
import re
import unicodedata
from collections.abc import Callable, Iterator

MIN_LIMIT = 32  # below that no code fence fits beside a text
MIN_FILL = 0.5  # a part is at least this full before it ends at a paragraph, a line or a sentence
MAX_CLUSTER = 32  # code points one character may have before it is cut all the same

Measure = Callable[[str], int]

_FENCE = re.compile(r"^ {0,3}(?P<marker>`{3,}|~{3,})(?P<info>[^\n]*)$", re.MULTILINE)
_SEAMS = (re.compile(r"\n\s*\n"), re.compile(r"\n"), re.compile(r"[.!?…。！？][\"')\]]*(\s|$)"))  # noqa: RUF001
_WORD_END = re.compile(r"\s")
_JOINERS = frozenset("\u200d\ufe0e\ufe0f")


def split(text: str, limit: int, measure: Measure = len) -> list[str]:
    """Return the parts of a text, each of at most `limit` units as `measure` counts them; none for a blank text.

    A unit is at most one code point: `measure` never counts fewer than `len`. Raises ValueError for a tiny limit.
    """
    if limit < MIN_LIMIT:
        raise ValueError(f"a limit of {limit} is too small to write anything in; at least {MIN_LIMIT} is wanted")
    return [] if not text or text.isspace() else list(_parts(text.strip("\n"), limit, measure))


def _parts(text: str, limit: int, measure: Measure) -> Iterator[str]:
    start, opener = 0, ""
    while start < len(text):
        size, part, opener_after = _next_part(text[start : start + limit + 1], opener, limit, measure)
        if part:  # none if the text begins with blanks and then a long word
            yield part
        start += size
        start = _after_seam(text, start, is_code=bool(opener_after))
        opener = opener_after


def _next_part(window: str, opener: str, limit: int, measure: Measure) -> tuple[int, str, str]:
    """Return how much of the window the next part takes, the part, and the code fence it leaves open."""
    head = f"{opener}\n" if opener else ""
    room = limit
    while True:
        size = _longest(window, head, room, measure)
        cut = size if size == len(window) else _seam(window, size, is_code=bool(opener))
        body = head + window[:cut]
        fence = _open_fence(body, limit, measure)
        part = _closed(body, fence)
        excess = measure(part) - limit
        if excess <= 0:
            return cut, part, fence
        room -= excess


def _longest(window: str, head: str, room: int, measure: Measure) -> int:
    """Return how many characters of the window fit behind `head`; at least one."""
    sizes = range(1, len(window) + 1)
    return max(1, bisect.bisect_right(sizes, room, key=lambda size: measure(head + window[:size])))


def _seam(window: str, size: int, *, is_code: bool) -> int:
    """Return the position to cut at, `size` or before it."""
    for seam in _SEAMS[1:2] if is_code else _SEAMS:
        ends = [match.end() if seam is _SEAMS[2] else match.start() for match in seam.finditer(window)]
        fitting = [end for end in ends if size * MIN_FILL <= end <= size]
        if fitting:
            return fitting[-1]
    words = [match.start() for match in _WORD_END.finditer(window, 1, size + 1)]
    return words[-1] if words and not is_code else _between_characters(window, size)


def _between_characters(window: str, size: int) -> int:
    for cut in range(size, max(1, size - MAX_CLUSTER), -1):
        following = window[cut]
        is_joined = unicodedata.combining(following) or following in _JOINERS or window[cut - 1] == "\u200d"
        if not is_joined:
            return cut
    return size


def _open_fence(text: str, limit: int, measure: Measure) -> str:
    """Return the line that opened the code block a text ends in; empty outside of one, or if it is too long to
    repeat.
    """
    opener, marker = "", ""
    for match in _FENCE.finditer(text):
        found, info = match["marker"], match["info"].strip()
        if not marker:
            opener, marker = f"{found}{info}", found
        elif found.startswith(marker) and not info:
            opener, marker = "", ""
    return opener if measure(f"{opener}\n\n{marker}") <= limit // 2 else ""


def _closed(text: str, fence: str) -> str:
    if not fence:
        return text.rstrip()
    marker = re.match(r"`+|~+", fence)
    return f"{text.rstrip(chr(10))}\n{marker[0] if marker else ''}"


def _after_seam(text: str, start: int, *, is_code: bool) -> int:
    """Return the position at which the next part begins: blanks are dropped, but not the indentation of code."""
    if is_code:
        return start + text.startswith("\n", start)
    while start < len(text) and text[start].isspace():
        start += 1
    return start
