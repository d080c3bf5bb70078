"""The thoughts of a reasoning model before its answer: `<think>...</think>` at the very beginning.

Pure. Owns telling thoughts from answer, in whole texts and in streams. Invariants: however a text is cut into pieces,
the parts are the same; a mark anywhere else is text; nothing is lost but the marks and the blanks beside them. Token
ids are not touched: the record of an answer holds its thoughts, too.
"""

from dataclasses import dataclass
from typing import Any, Literal

OPENING, CLOSING = "<think>", "</think>"
_OTHER_MARKS = (("[THINK]", "[/THINK]"), ("<seed:think>", "</seed:think>"))  # of Mistral's and Seed's templates


@dataclass(frozen=True)
class ReasoningParts:
    """A text's thoughts and its answer."""

    reasoning: str
    text: str


class Reasoning:
    """A parser of a stream into thoughts and answer. `is_open`: the prompt has opened the thoughts already."""

    def __init__(self, *, is_open: bool = False) -> None:
        self._stage: Literal["beginning", "thoughts", "answer"] = "thoughts" if is_open else "beginning"
        self._held = ""  # a possible beginning of a mark, and blanks that may be beside one
        self._has_thought = self._has_said = False

    def take(self, piece: str) -> ReasoningParts:
        """Return the piece's addition to each part."""
        self._held += piece
        if self._stage == "beginning":
            self._begin()
        reasoning = self._think() if self._stage == "thoughts" else ""
        return ReasoningParts(reasoning, self._say() if self._stage == "answer" else "")

    def rest(self) -> ReasoningParts:
        """Return the rest that was held back, at the end of the stream."""
        held, self._held = self._held, ""
        return ReasoningParts(self._thought(held), "") if self._stage == "thoughts" else ReasoningParts("", held)

    def _begin(self) -> None:
        begun = self._held.lstrip()
        if begun.startswith(OPENING):
            self._stage, self._held = "thoughts", begun.removeprefix(OPENING)
        elif not OPENING.startswith(begun):
            self._stage, self._has_said = "answer", True  # nothing stood before it: its blanks are its own

    def _think(self) -> str:
        thought, mark, said = self._held.partition(CLOSING)
        if mark:
            self._stage, self._held = "answer", said
            return self._thought(thought.rstrip())
        certain = thought[: len(thought) - _overlap(thought)].rstrip()
        self._held = thought[len(certain) :]
        return self._thought(certain)

    def _thought(self, piece: str) -> str:
        piece = piece if self._has_thought else piece.lstrip()
        self._has_thought = self._has_thought or bool(piece)
        return piece

    def _say(self) -> str:
        said, self._held = self._held if self._has_said else self._held.lstrip(), ""
        self._has_said = self._has_said or bool(said)
        return said


def marks_of(tokenizer: Any) -> tuple[str, str]:
    """Return the marks around a model's thoughts: those that its chat template or its tokens name, else `<think>`."""
    named = [
        str(getattr(tokenizer, "chat_template", "") or ""),
        *(str(t) for t in tokenizer.added_tokens_decoder.values()),
    ]
    return next((marks for marks in _OTHER_MARKS if any(marks[0] in text for text in named)), (OPENING, CLOSING))


def parted(text: str) -> ReasoningParts:
    """Split a whole text. Thoughts whose opening mark was in the prompt are told by their closing one alone."""
    reasoning = Reasoning(is_open=CLOSING in text and not text.lstrip().startswith(OPENING))
    first, last = reasoning.take(text), reasoning.rest()
    return ReasoningParts(first.reasoning + last.reasoning, first.text + last.text)


def without_thoughts(text: str) -> str:
    """Return a text that another program sent, without the closed thoughts at its beginning. Other marks are text."""
    has_thoughts = text.lstrip().startswith(OPENING) and CLOSING in text
    return parted(text).text if has_thoughts else text


def _overlap(text: str) -> int:
    """Count the characters at the end of `text` that may be the beginning of the closing mark."""
    return next((n for n in range(len(CLOSING) - 1, 0, -1) if text.endswith(CLOSING[:n])), 0)
