"""Questions that a note answers: in the model's words or in the note's, chosen by how far the note moves the answer.

Pure. A note that shows only in answers to questions about it ("my dog is called Rex") teaches nothing on other prompts
and needs questions of its own. The model writes them on request; for a model that cannot, frames of the bank are filled
with the note's words. Neither is judged by its words: a question counts if the note moves the teacher,

    gap = mean_t KL( p(. | x, n) || p(. | x) ) over the answer of the teacher that reads the note n.

Invariant: one question has one answer; if two notes give one, it is the newest note's.
"""

import re
import unicodedata
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from engine.config import FactConfig
from engine.requests import ChatMessage

_REQUEST = (
    "Write one short question that I may ask you later and that this note answers, in the language of the note. "
    "Only the question.\nNote: {note}"
)
_MAX_CHARS = 200  # of a question; a longer text is no question
_MIN_LETTERS = 3  # of a word that a question may be about
_HELD_OUT = 3  # of so many questions one is not trained on, so that a note that leaves is known in other words, too
_SHARED = 2  # other notes with a word, from which on it is the way such notes are written; one may say something newer


@dataclass(frozen=True)
class NoteQuestion:
    """A question, the place of the note that answers it among the notes looked at, and its gap in nats per token."""

    note: int
    text: str
    gap: float


def request(note: str) -> list[ChatMessage]:
    """Return the conversation that asks the model for a question."""
    return [{"role": "user", "content": _REQUEST.format(note=note)}]


def cleaned(answer: str) -> str:
    """Return the question in the model's text, empty if there is none."""
    line = answer.strip().partition("\n")[0].strip()
    while line and _is_wrapping(line[0]):
        line = line[1:].lstrip()
    while line and _is_wrapping(line[-1]):
        line = line[:-1].rstrip()
    return line if _is_question(line) and len(line) <= _MAX_CHARS else ""


def _is_wrapping(char: str) -> bool:
    """Return True for quotes of any script, and for the marks of a list or of bold text."""
    return char in "\"'*-" or unicodedata.category(char) in ("Pi", "Pf", "Pd") or char in "「」『』„"


def _is_question(line: str) -> bool:
    """Return True if a line ends as a question does: by any script's question mark, or as Japanese ones do."""
    return line != "" and ("QUESTION MARK" in unicodedata.name(line[-1], "") or line.endswith(("か。", "か")))


def words_of(note: str) -> list[str]:
    """Return the words that a question about the note may be about."""
    return list(dict.fromkeys(word for word in re.findall(r"[^\W\d_]+", note) if len(word) >= _MIN_LETTERS))


def own_words(note: str, others: Sequence[str] = ()) -> list[str]:
    """Return the words that a question may be about, without those that two `others` share; all, if it has no own."""
    return unshared(words_of(note), map(words_of, others))


def unshared(words: Collection[str], others: Iterable[Collection[str]]) -> list[str]:
    """Return the words that fewer than two `others` have, each given by its words; all, if there are none."""
    uses = Counter(word for other in others for word in other)
    return [word for word in words if uses[word] < _SHARED] or list(words)


def framed(note: str, frames: Sequence[str], others: Sequence[str] = ()) -> list[str]:
    """Return every frame with every one of the note's own words in its place.

    A frame takes no word of another script: the model's own questions are in the note's language.
    """
    pairs = [(frame, word) for word in own_words(note, others) for frame in frames if _scripts(frame) <= _scripts(word)]
    return list(dict.fromkeys(frame.replace("{x}", word) for frame, word in pairs))


def _scripts(text: str) -> set[str]:
    """Return the scripts of a text's letters, by the first words of their Unicode names."""
    letters = text.replace("{x}", "")
    return {unicodedata.name(char, "").partition(" ")[0] for char in letters if char.isalpha()}


def tells(own: Sequence[str], question: str, answer: str) -> bool:
    """Return True if the answer has one of a note's own words that the question has not.

    "What is my Rex called?" asks for nothing that "my dog is called Rex" tells, and the answer is made up.
    """
    asked, said = words_of(question.casefold()), words_of(answer.casefold())
    return any(word in said and word not in asked for word in (own_word.casefold() for own_word in own))


def taught(texts: Sequence[str]) -> list[str]:
    """Return what is trained on, of the questions of a note or of untold things: all but every third."""
    return [text for place, text in enumerate(texts) if place % _HELD_OUT != _HELD_OUT - 1]


def in_use(frames: Sequence[str], kept: Sequence[tuple[str, Sequence[str]]]) -> list[str]:
    """Return the frames that notes are asked in, given with the questions kept for each; all, if they are in none."""
    asked = {text for _, texts in kept for text in texts}
    return [f for f in frames if any(asked & set(framed(note, [f])) for note, _ in kept)] or list(frames)


def left_out(texts: Sequence[str]) -> list[str]:
    """Return every third, which nothing is trained on: probes and gates ask them."""
    return list(texts[_HELD_OUT - 1 :: _HELD_OUT])


def untold(frames: Sequence[str], things: Sequence[str], notes: Sequence[str], count: int) -> list[str]:
    """Return `count` questions about things that no note speaks of, the frames in turn."""
    told = {word for note in notes for word in words_of(note)}
    others = [thing for thing in things if thing not in told]
    pairs = [(frames[i % len(frames)], others[i * len(others) // count]) for i in range(count) if frames and others]
    return list(dict.fromkeys(frame.replace("{x}", thing) for frame, thing in pairs))


def chosen(found: Sequence[NoteQuestion], config: FactConfig) -> dict[int, list[str]]:
    """Return the questions with the largest gaps for each note: place of the note -> texts. No text is there twice."""
    owners = {q.text.lower(): q for q in sorted(found, key=lambda q: q.note) if q.gap >= config.min_gap}
    kept: dict[int, list[str]] = {}
    for question in sorted(owners.values(), key=lambda q: -q.gap):
        own = kept.setdefault(question.note, [])
        if len(own) < config.num_questions:
            own.append(question.text)
    return kept
