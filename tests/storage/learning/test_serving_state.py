"""storage.learning.serving_state: what people are answered with, many at once."""

import pytest

from storage.database import Database, Session
from storage.kinds import FeedbackKind, Meaning, NoteState
from storage.learning import feedback, notes, versions
from storage.learning.serving_state import serving_states
from storage.people import people
from storage.tables import Feedback, Note


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


@pytest.mark.parametrize(
    ("reading", "is_unsure", "is_fact"),
    [(Meaning.FACT, False, True), (Meaning.FACT, True, False), (Meaning.WISH, False, False)],
)
async def test_a_note_that_was_surely_read_as_a_fact_is_one(
    database: Database, reading: Meaning, *, is_unsure: bool, is_fact: bool
) -> None:
    """One without feedback was never read."""

    def known(s: Session) -> tuple[str, str]:
        ana = people.resolve(s, "http", "ana").id
        row, _ = feedback.add(s, Feedback(user_id=ana, kind=FeedbackKind.NOTE, text="my dog is called Rex"))
        feedback.note_reading(s, row.id, reading, 0.9, is_unsure=is_unsure)
        notes.add(s, Note(user_id=ana, text="imported", state=NoteState.IN_PROMPT))
        told = Note(user_id=ana, feedback_id=row.id, text="my dog is called Rex", state=NoteState.IN_PROMPT)
        return ana, notes.add(s, told).id

    ana, told = await database.write(known)
    (found,) = await database.read(lambda s: serving_states(s, [ana]))
    assert found is not None
    assert len(found.notes) == 2
    assert found.facts == ({told} if is_fact else set())


async def test_as_many_as_a_database_takes_names(database: Database) -> None:
    """A burst of a thousand people is one question."""
    found = await database.read(lambda s: serving_states(s, [f"nobody-{n}" for n in range(1000)]))
    assert found == [None] * 1000
