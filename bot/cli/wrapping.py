"""Breaks a text into lines at blanks while it comes: a terminal breaks it in the middle of a word."""

import re

from rich.cells import cell_len

_PIECE = re.compile(r"\n|[^\S\n]+|\S+")


class WordWrap:
    """One text on lines of `width` cells; `column` is where it begins. A word longer than a line stays whole.

    Invariant: all that was fed comes out in order, but for blanks that a line end has replaced.
    """

    def __init__(self, width: int, column: int = 0) -> None:
        self._width = width
        self._column = column
        self._held = ""  # the last word so far: it may go on
        self._blanks = ""  # before it

    def feed(self, text: str) -> str:
        """Return what can be shown now: every word that has ended."""
        pieces = _PIECE.findall(self._held + text)
        self._held = pieces.pop() if pieces and not pieces[-1].isspace() else ""
        return "".join(map(self._placed, pieces))

    def rest(self) -> str:
        """Return the last word and the blanks behind it."""
        held, self._held = self._held, ""
        shown = self._placed(held) if held else ""
        blanks, self._blanks = self._blanks, ""
        return shown + blanks

    def _placed(self, piece: str) -> str:
        if piece == "\n":
            self._column, self._blanks = 0, ""
            return piece
        if piece.isspace():
            self._blanks += piece
            return ""
        blanks, self._blanks = self._blanks, ""
        needed = cell_len(piece)
        if self._column and self._column + cell_len(blanks) + needed > self._width:
            self._column = needed
            return f"\n{piece}"
        self._column += cell_len(blanks) + needed
        return blanks + piece
