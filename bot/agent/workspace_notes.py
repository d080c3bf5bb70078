"""Notes about a workspace: what a person has an agent told in every session there, and nowhere else.

The same few words on every surface: nothing lists them, `delete 2` removes one, all else is a note.
"""

import re
from dataclasses import dataclass

from bot.errors import InvalidField
from storage.conversations import workspace_notes
from storage.database import Database

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
        rows = await self._database.read(lambda s: workspace_notes.of(s, user_id, workspace))
        return [row.text for row in rows]

    async def hear(self, user_id: str, workspace: str, said: str) -> WorkspaceTold:
        """Do what a person says about the notes. Raises InvalidField."""
        said = " ".join(said.split())
        if number := _DELETE.fullmatch(said):
            text = await self._delete(user_id, workspace, int(number[1]))
        elif said:
            text = await self._add(user_id, workspace, said)
        else:
            text = ""
        notes = await self.of(user_id, workspace)
        return WorkspaceTold(
            text or "\n".join(f"{place}. {note}" for place, note in enumerate(notes, 1)) or NONE, notes
        )

    async def _add(self, user_id: str, workspace: str, text: str) -> str:
        if len(text) > MOST_CHARS:
            raise InvalidField(TOO_LONG, "text")
        if len(await self.of(user_id, workspace)) >= MOST_NOTES:
            raise InvalidField(TOO_MANY, "text")
        await self._database.write(lambda s: workspace_notes.add(s, user_id, workspace, text))
        return NOTED

    async def _delete(self, user_id: str, workspace: str, number: int) -> str:
        rows = await self._database.read(lambda s: workspace_notes.of(s, user_id, workspace))
        if not 1 <= number <= len(rows):
            raise InvalidField(NO_SUCH.format(number), "text")
        gone = rows[number - 1]
        await self._database.write(lambda s: workspace_notes.remove(s, gone.seq or 0))
        return DELETED.format(gone.text)
