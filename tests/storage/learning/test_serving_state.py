"""storage.learning.serving_state: what people are answered with, many at once."""

from storage.database import Database
from storage.kinds import NoteState
from storage.learning import notes, versions
from storage.learning.serving_state import serving_states
from storage.people import people
from storage.tables import Note


async def test_each_gets_their_own_version_and_notes(database: Database) -> None:
    """States come in the order asked for, without deleted notes; an unknown person's is None."""

    def known(s: object) -> tuple[str, str]:
        ana, ben = (people.resolve(s, "http", name).id for name in ("ana", "ben"))  # type: ignore[arg-type]
        version = versions.allocate(s, ana, 0, "base", None, None)  # type: ignore[arg-type]
        versions.accept(s, ana, version.number, "0" * 64, 1)  # type: ignore[arg-type]
        for text, state in (("a", NoteState.IN_PROMPT), ("b", NoteState.DELETED), ("c", NoteState.IN_WEIGHTS)):
            notes.add(s, Note(user_id=ana, text=text, state=state))  # type: ignore[arg-type]
        return ana, ben

    ana, ben = await database.write(known)
    of_ben, nobody, of_ana = await database.read(lambda s: serving_states(s, [ben, "nobody", ana]))
    assert nobody is None
    assert of_ben is not None
    assert (of_ben.version, of_ben.notes) == (None, [])
    assert of_ana is not None
    assert of_ana.version is not None
    assert of_ana.version.number == 1
    assert [note.text for note in of_ana.notes] == ["a", "c"]


async def test_as_many_as_a_database_takes_names(database: Database) -> None:
    """A burst of a thousand people is one question."""
    found = await database.read(lambda s: serving_states(s, [f"nobody-{n}" for n in range(1000)]))
    assert found == [None] * 1000
