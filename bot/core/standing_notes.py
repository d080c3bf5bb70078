"""A person's standing notes as they are now: those in the prompt of the next answer, and those that are not.

A note may stand and still be out of the prompt: the weights hold it, it waits for a question, or there is no room.
"""

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from storage.database import Database
from storage.kinds import NoteState
from storage.learning import notes
from storage.tables import Note, User

if TYPE_CHECKING:
    from engine.engine import Engine

_DELETED = re.compile(r"delete\s*([0-9]{1,9})\s*")
WAITING = "waiting"  # a note that stands, and that the prompt has no room for


@dataclass(frozen=True)
class StandingNotes:
    """The notes that stand, oldest first, and the ids of those that every next answer gets."""

    live: list[Note]
    in_prompt: frozenset[str]

    def state(self, note: Note) -> str:
        """Return where a note is now: its stored state, or WAITING if it is one for the prompt and not in it."""
        is_out = note.state in (NoteState.IN_PROMPT, NoteState.LEARNING) and note.id not in self.in_prompt
        return WAITING if is_out else note.state

    def numbered(self, argument: str) -> Note | None:
        """Return the note that "delete 2" names, None if it names none."""
        number = _DELETED.fullmatch(argument)
        return self.live[int(number[1]) - 1] if number and 1 <= int(number[1]) <= len(self.live) else None

    @property
    def tokens_in_prompt(self) -> int:
        """The tokens of the notes in the prompt."""
        return sum(note.num_tokens for note in self.live if note.id in self.in_prompt)

    @property
    def tokens_saved(self) -> int:
        """The tokens of the notes that the weights hold, and that the prompt is therefore without."""
        held = [note for note in self.live if note.state == NoteState.IN_WEIGHTS and note.id not in self.in_prompt]
        return sum(note.num_tokens for note in held)


async def standing_notes(engine: "Engine", database: Database, user: User) -> StandingNotes:
    """Return the notes of a person as they are now."""
    live = await database.read(lambda s: notes.live(s, user.id))
    in_prompt = await engine.prompt_notes(live, user.active_version)
    return StandingNotes(live, frozenset(note.id for note in in_prompt))
