"""The notes that a conversation is shown: a fact that stays in the prompt can wait until a question concerns it.

Pure. A small model reads few facts at once: of twenty in its prompt it tells one in answer to every question. A fact
concerns a question that shares a word with it, one that hardly another note of the person has. Invariant: every note
that does not wait is always shown.
"""

import re
from collections import Counter
from collections.abc import Sequence

from engine.gates.texts import apart
from engine.requests import ChatMessage
from storage.kinds import NoteState
from storage.tables import Note

_NUM_TURNS = 2  # of the person, the newest: "and what is he called?" goes on with the one before
_MIN_LETTERS = 3  # of a word that says something, but in scripts without blanks, where each letter is looked at
_SHARED = 2  # other notes with a word, from which on it is the way such notes are written


def shown(notes: Sequence[Note], live: Sequence[Note], messages: Sequence[ChatMessage]) -> list[Note]:
    """Return the notes without those that wait for a question and are not asked for. `live`: all that stand."""
    return [note for note in notes if note.state != NoteState.WHEN_ASKED or concerns(note, live, messages)]


def concerns(note: Note, live: Sequence[Note], messages: Sequence[ChatMessage]) -> bool:
    """Return True if the person's newest turns share one of the note's own words among the `live` ones."""
    asked = [message["content"] for message in messages if message["role"] == "user"][-_NUM_TURNS:]
    return not _own_words(note, live).isdisjoint(_words(" ".join(asked)))


def _own_words(note: Note, live: Sequence[Note]) -> set[str]:
    """Return the words of a note that fewer than two others have; all, if it has none."""
    uses = Counter(word for other in live if other.id != note.id for word in _words(other.text))
    words = _words(note.text)
    return {word for word in words if uses[word] < _SHARED} or words


def _words(text: str) -> set[str]:
    plain = text.casefold()
    words = re.findall(r"[^\W\d_]+", apart(plain))
    return {word for word in words if len(word) >= _MIN_LETTERS or apart(word) != word}
