"""engine.adapters.superseding: of two wishes that no answer can follow together the newer holds."""

from collections.abc import Callable

import pytest

from engine.adapters import superseding, undo
from storage.database import Database, Session
from storage.kinds import FeedbackKind, Meaning, NoteState, Scope
from storage.learning import feedback, notes
from storage.tables import Note
from tests.engine.rows import person, said


@pytest.fixture
async def ana(database: Database) -> str:
    """A person's id."""
    return await database.write(person)


def noted(s: Session, user_id: str, text: str, reading: str = Meaning.WISH, scope: str = "") -> Note:
    """A note of a correction that was read."""
    row = said(s, user_id, text, kind=FeedbackKind.CORRECTION)
    feedback.note_reading(s, row.id, reading, 0.9, is_unsure=False)
    feedback.get(s, row.id).scope = scope
    return superseding.add(s, Note(user_id=user_id, feedback_id=row.id, text=text, state=NoteState.IN_PROMPT))


async def live(database: Database, user_id: str) -> list[str]:
    """The words of the notes that hold."""
    return [note.text for note in await database.read(lambda s: notes.live(s, user_id))]


async def test_the_newer_of_two_languages_holds(database: Database, ana: str) -> None:
    """Other wishes stay, and so does the newest of three."""
    for text in ("Answer in Spanish.", "too long", "please speak English with me", "auf Deutsch bitte"):
        await database.write(lambda s, t=text: noted(s, ana, t))
    assert await live(database, ana) == ["too long", "auf Deutsch bitte"]


async def test_what_is_no_wish_replaces_nothing_and_is_not_replaced(database: Database, ana: str) -> None:
    """A fact with the word for a language in it asks for none."""
    for text, reading in (("Answer in Spanish.", Meaning.WISH), ("I teach English in Lima", Meaning.FACT)):
        await database.write(lambda s, t=text, r=reading: noted(s, ana, t, r))
    assert await live(database, ana) == ["Answer in Spanish.", "I teach English in Lima"]
    await database.write(lambda s: noted(s, ana, "in French please"))
    assert await live(database, ana) == ["I teach English in Lima", "in French please"]


async def test_a_persons_own_choice_makes_it_a_wish(database: Database, ana: str) -> None:
    """Whatever it was read as."""
    await database.write(lambda s: noted(s, ana, "no emoji please"))
    await database.write(lambda s: noted(s, ana, "emoji!", Meaning.REMARK, Scope.ALWAYS))
    assert await live(database, ana) == ["emoji!"]


@pytest.mark.parametrize(
    ("older", "newer", "held"),
    [
        ("use miles", "imperial means nothing to me", ["imperial means nothing to me"]),
        ("stop asking me questions", "conclude with a question", ["conclude with a question"]),
        ("in Spanish please", "I teach English in Lima", ["in Spanish please", "I teach English in Lima"]),
    ],
)
async def test_a_told_note_that_nothing_has_read_is_a_wish_if_it_tells_of_no_one(
    database: Database, ana: str, older: str, newer: str, held: list[str]
) -> None:
    """A model without a probe reads no note: what speaks of the person may be a fact and replaces nothing."""

    def told(s: Session, text: str) -> None:
        row = said(s, ana, text, kind=FeedbackKind.NOTE)
        superseding.add(s, Note(user_id=ana, feedback_id=row.id, text=text, state=NoteState.IN_PROMPT))

    for text in (older, newer):
        await database.write(lambda s, t=text: told(s, t))
    assert await live(database, ana) == held


async def test_an_undone_wish_gives_the_one_before_its_place_again(database: Database, ana: str) -> None:
    """And not the one before that, which it had replaced."""
    for text in ("in Spanish please", "in German please", "in French please"):
        await database.write(lambda s, t=text: noted(s, ana, t))
    await database.write(lambda s: undo.undo(s, ana))
    assert await live(database, ana) == ["in German please"]


async def test_a_deleted_wish_gives_the_one_before_its_place_again(database: Database, ana: str) -> None:
    """As an undone one does."""
    await database.write(lambda s: noted(s, ana, "in Spanish please"))
    newer = await database.write(lambda s: noted(s, ana, "in German please"))
    await database.write(lambda s: undo.delete_note(s, ana, newer.id))
    assert await live(database, ana) == ["in Spanish please"]


async def test_other_people_keep_theirs(database: Database, ana: str) -> None:
    """A wish replaces its own person's alone."""
    ben = await database.write(lambda s: person(s, "ben"))
    await database.write(lambda s: noted(s, ana, "in Spanish please"))
    await database.write(lambda s: noted(s, ben, "in English please"))
    assert await live(database, ana) == ["in Spanish please"]


async def test_the_wishes_whose_place_one_has_taken(database: Database, ana: str) -> None:
    """Not what an earlier wish that still holds had replaced, and nothing by a fact."""

    def told(text: str, reading: str = Meaning.WISH) -> Callable[[Session], list[str]]:
        return lambda s: [old.text for old in superseding.replaced_by(s, noted(s, ana, text, reading))]

    assert await database.write(told("too long")) == []
    assert await database.write(told("in Spanish please")) == []
    assert await database.write(told("in English please")) == ["in Spanish please"]
    assert await database.write(told("speak English with me again")) == []
    assert await database.write(told("I teach German", Meaning.FACT)) == []
    assert await database.write(told("auf Deutsch bitte")) == [
        "in Spanish please", "in English please", "speak English with me again",
    ]  # fmt: skip
