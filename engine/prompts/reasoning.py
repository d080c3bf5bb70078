"""The thoughts of a reasoning model before its answer: `<think>...</think>` at the very beginning.

Pure. Owns the marks that models put around their thoughts (`KNOWN_MARKS`), and telling thoughts from answer, in whole
texts and in streams. Invariants: however a text is cut into pieces, the parts are the same; a mark anywhere else is
text; nothing is lost but the marks and the blanks beside them. Token ids are not touched: the record of an answer holds
its thoughts, too.
"""

from dataclasses import dataclass
from typing import Any, Literal, NamedTuple


class Marks(NamedTuple):
    """The marks around a model's thoughts."""

    opening: str
    closing: str


USUAL_MARKS = Marks("<think>", "</think>")  # Qwen, DeepSeek, Phi and most others
KNOWN_MARKS = (  # the first one that a chat template names is the model's
    Marks("[THINK]", "[/THINK]"),  # Mistral
    Marks("<|START_THINKING|>", "<|END_THINKING|>"),  # Cohere
    Marks("<seed:think>", "</seed:think>"),
    Marks("<mm:think>", "</mm:think>"),  # MiniMax
    Marks("<|begin_of_thought|>", "<|end_of_thought|>"),  # OpenThinker
    Marks("\u25c1think\u25b7", "\u25c1/think\u25b7"),  # Kimi
    USUAL_MARKS,
    Marks("<thinking>", "</thinking>"),
)


@dataclass(frozen=True)
class ReasoningParts:
    """A text's thoughts and its answer."""

    reasoning: str
    text: str


class Reasoning:
    """A parser of a stream into thoughts and answer. `is_open`: the prompt has opened the thoughts already."""

    def __init__(self, marks: Marks = USUAL_MARKS, *, is_open: bool = False) -> None:
        self._marks = marks
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
        if begun.startswith(self._marks.opening):
            self._stage, self._held = "thoughts", begun.removeprefix(self._marks.opening)
        elif not self._marks.opening.startswith(begun):
            self._stage, self._has_said = "answer", True  # nothing stood before it: its blanks are its own

    def _think(self) -> str:
        thought, mark, said = self._held.partition(self._marks.closing)
        if mark:
            self._stage, self._held = "answer", said
            return self._thought(thought.rstrip())
        certain = thought[: len(thought) - _overlap(thought, self._marks.closing)].rstrip()
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


def marks_of(tokenizer: Any) -> Marks:
    """Return the marks around a model's thoughts: named by its chat template, else by its tokens, else the usual."""
    template = str(getattr(tokenizer, "chat_template", "") or "")
    tokens = {str(token) for token in tokenizer.added_tokens_decoder.values()}
    named = [marks for marks in KNOWN_MARKS if marks.opening in template]
    named += [marks for marks in KNOWN_MARKS if marks.opening in tokens]
    return named[0] if named else USUAL_MARKS


def parted(text: str, marks: Marks = USUAL_MARKS) -> ReasoningParts:
    """Split a whole text. Thoughts whose opening mark was in the prompt are told by their closing one alone."""
    reasoning = Reasoning(marks, is_open=marks.closing in text and not text.lstrip().startswith(marks.opening))
    first, last = reasoning.take(text), reasoning.rest()
    return ReasoningParts(first.reasoning + last.reasoning, first.text + last.text)


def without_thoughts(text: str) -> str:
    """Return a text that another program sent, without the closed thoughts at its beginning. Other marks are text."""
    begins = text.lstrip()
    marks = next((m for m in KNOWN_MARKS if begins.startswith(m.opening) and m.closing in begins), None)
    return parted(text, marks).text if marks else text


def _overlap(text: str, mark: str) -> int:
    """Count the characters at the end of `text` that may be the beginning of a mark."""
    return next((n for n in range(len(mark) - 1, 0, -1) if text.endswith(mark[:n])), 0)
