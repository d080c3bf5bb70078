"""Notes about a workspace: what a person has an agent told in every session there, and nowhere else.

The same few words on every surface: nothing lists them, `delete 2` removes one, all else is a note.
"""

import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import partial

from bot.errors import InvalidField
from storage.conversations import workspace_notes
from storage.database import Database, Session
from storage.tables import WorkspaceNote

MOST_NOTES = 16
MOST_CHARS = 500
NONE = (
    "There are no notes about this workspace. Whatever I am told here holds in every session in it, and nowhere else."
)
NOTED = "Noted. It holds in every session in this workspace, and nowhere else."
DELETED = "Deleted: {}"
NO_SUCH = "There is no note {} about this workspace."
TOO_MANY = f"There may be {MOST_NOTES} notes about a workspace: delete one first."
TOO_LONG = f"A note about a workspace may have {MOST_CHARS} characters."
_DELETE = re.compile(r"delete (\d{1,4})")

Effect = Callable[[Session], None]
KeepTold = Callable[[str, Effect], Awaitable[None]]


@dataclass(frozen=True)
class WorkspaceTold:
    """The answer to words about a workspace's notes: a text for the person, and the notes that stand now."""

    text: str
    notes: list[str]


class WorkspaceNotes:
    """The notes of everyone."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def of(self, user_id: str, workspace: str) -> list[str]:
        """Return a person's notes about a workspace, the oldest first."""
        return [row.text for row in await self._rows(user_id, workspace)]

    async def hear(self, user_id: str, workspace: str, said: str, keep: KeepTold | None = None) -> WorkspaceTold:
        """Do what a person says about the notes. Raises InvalidField.

        `keep` stores the effect together with what is said of it; without it the effect alone is stored.
        """
        told, effect = await self._meant(user_id, workspace, said)
        await (keep or self._keep)(told.text, effect)
        return told

    async def _keep(self, _text: str, effect: Effect) -> None:
        await self._database.write(effect)

    async def _meant(self, user_id: str, workspace: str, said: str) -> tuple[WorkspaceTold, Effect]:
        said, rows = " ".join(said.split()), await self._rows(user_id, workspace)
        if number := _DELETE.fullmatch(said):
            gone = _numbered(rows, int(number[1]))
            left = [row.text for row in rows if row is not gone]
            return WorkspaceTold(DELETED.format(gone.text), left), partial(workspace_notes.remove, seq=gone.seq or 0)
        notes = [row.text for row in rows]
        if not said:
            listed = "\n".join(f"{place}. {note}" for place, note in enumerate(notes, 1))
            return WorkspaceTold(listed or NONE, notes), lambda _: None
        if len(said) > MOST_CHARS:
            raise InvalidField(TOO_LONG, "text")
        if len(notes) >= MOST_NOTES:
            raise InvalidField(TOO_MANY, "text")
        noted = partial(workspace_notes.add, user_id=user_id, workspace=workspace, text=said)
        return WorkspaceTold(NOTED, [*notes, said]), noted

    async def _rows(self, user_id: str, workspace: str) -> list[WorkspaceNote]:
        return await self._database.read(lambda s: workspace_notes.of(s, user_id, workspace))


def is_note(said: str) -> bool:
    """Return True for words that are a note, which only a person that heed knows can have, and may be long enough."""
    words = " ".join(said.split())
    return 0 < len(words) <= MOST_CHARS and _DELETE.fullmatch(words) is None


def _numbered(rows: list[WorkspaceNote], number: int) -> WorkspaceNote:
    if not 1 <= number <= len(rows):
        raise InvalidField(NO_SUCH.format(number), "text")
    return rows[number - 1]
