"""Erasure of a person for good: the rows, and every copy of them that the database keeps elsewhere.

Adapter files are not storage's: the engine erases those (and, at its start, the directories of people who are gone).
"""

from storage.database import Database
from storage.people import people


async def forget_person(database: Database, user_id: str) -> bool:
    """Remove a person's rows, the write-ahead log that held them and backups made before. Return False if no one has
    that id.

    Harmless to repeat, which finishes an erasure that was cut short. Raises DatabaseBusy if a reader stands in the
    way of emptying the log; the rows are gone then.
    """
    was_known = await database.write(lambda s: people.forget(s, user_id))
    await database.remove_backups()
    await database.checkpoint()
    return was_known


async def unlearn_person(database: Database, user_id: str) -> None:
    """Remove what was learned from a person, and every copy of it, and leave them and their own notes.

    Harmless to repeat. Raises PersonNotFound, and DatabaseBusy as forget_person.
    """
    await database.write(lambda s: people.unlearn(s, user_id))
    await database.remove_backups()
    await database.checkpoint()
