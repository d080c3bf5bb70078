"""engine.learning.endings: how feedback ends that no update decides."""

import pytest

from engine.adapters import superseding
from engine.learning import endings
from engine.learning.endings import NoteWords
from storage.database import Database
from storage.errors import FeedbackNotFound
from storage.kinds import FeedbackKind, FeedbackStatus, NoteState
from storage.learning import feedback, notes, updates
from storage.people import people
from storage.tables import Feedback, Note, UpdateRun


async def given(database: Database) -> Feedback:
    """A correction that waits for its update."""
    user = await database.write(lambda s: people.resolve(s, "http", "ana", is_learning=True))
    row, _ = await database.write(
        lambda s: feedback.add(s, Feedback(user_id=user.id, kind="correction", text="too long"))
    )
    return row


async def test_a_cancelled_lesson_leaves_nothing(database: Database) -> None:
    """Its note is deleted, its update says that it was cancelled, and no later heed takes it up."""
    row = await given(database)
    await database.write(lambda s: feedback.begin_training(s, row.id))
    note = Note(user_id=row.user_id, feedback_id=row.id, text="too long", state=NoteState.IN_PROMPT, num_tokens=2)
    await database.write(lambda s: notes.add(s, note))
    run = await database.write(lambda s: updates.start(s, UpdateRun(user_id=row.user_id, feedback_id=row.id)))
    await database.write(lambda s: updates.finish(s, run.id, status="failed", error="CancelledError"))
    outcome = await endings.cancel(database, row.id)
    assert (outcome.status, outcome.adapter_version) == ("cancelled", 0)
    assert (await database.read(lambda s: feedback.get(s, row.id))).status == FeedbackStatus.CANCELLED
    assert await database.read(lambda s: notes.live(s, row.user_id)) == []
    logged = await database.read(lambda s: updates.get(s, row.user_id, run.id))
    assert (logged.status, logged.error) == (updates.CANCELLED, "")
    assert await database.write(lambda s: feedback.requeue_interrupted(s, max_attempts=3)) == []
    assert await database.read(feedback.pending) == []


async def test_a_cancelled_lesson_gives_back_what_its_wish_had_replaced(database: Database) -> None:
    """The older of two wishes that exclude each other holds again."""
    row = await given(database)
    older = Note(user_id=row.user_id, text="Answer in Spanish.", state=NoteState.IN_PROMPT)
    newer = Note(user_id=row.user_id, feedback_id=row.id, text="Answer in English.", state=NoteState.LEARNING)
    for note in (older, newer):
        await database.write(lambda s, n=note: superseding.add(s, n))
    assert [n.text for n in await database.read(lambda s: notes.live(s, row.user_id))] == ["Answer in English."]
    await endings.cancel(database, row.id)
    assert [n.text for n in await database.read(lambda s: notes.live(s, row.user_id))] == ["Answer in Spanish."]


async def test_a_note_says_whose_place_it_has_taken(database: Database) -> None:
    """The newer of two wishes that no answer can follow together holds, also where both are told."""
    user = await database.write(lambda s: people.resolve(s, "http", "ben"))
    for text in ("use miles", "metric please"):
        row = Feedback(user_id=user.id, kind=FeedbackKind.NOTE, text=text)
        stored, _ = await database.write(lambda s, row=row: feedback.add(s, row))
        outcome = await endings.keep_note(database, stored, 0, NoteWords(text), len)
    assert (outcome.note, outcome.replaced) == ("metric please", ["use miles"])
    assert [n.text for n in await database.read(lambda s: notes.live(s, user.id))] == ["metric please"]


async def test_what_has_ended_cannot_be_cancelled(database: Database) -> None:
    """Feedback that was learned stays learned."""
    row = await given(database)
    await database.write(lambda s: feedback.set_status(s, row.id, FeedbackStatus.LEARNED))
    assert (await endings.cancel(database, row.id)).status == "learned"
    assert (await database.read(lambda s: feedback.get(s, row.id))).status == FeedbackStatus.LEARNED


async def test_unknown_feedback_cannot_be_cancelled(database: Database) -> None:
    """It raises FeedbackNotFound."""
    with pytest.raises(FeedbackNotFound):
        await endings.cancel(database, "nothing")


async def test_a_parked_update_says_why(database: Database) -> None:
    """Its feedback has failed, and the person reads the reason as a sentence."""
    row = await given(database)
    outcome = await endings.park(database, row.id, "no room.")
    assert (outcome.status, outcome.reason) == ("rejected", "The update failed: no room.")
    assert (await database.read(lambda s: feedback.get(s, row.id))).status == FeedbackStatus.FAILED


async def test_feedback_without_an_update_is_kept(database: Database) -> None:
    """With the reason in the row and in the outcome."""
    row = await given(database)
    outcome = await endings.keep(database, row, 3, "Learning is off.")
    assert (outcome.status, outcome.adapter_version, outcome.reason) == ("kept", 3, "Learning is off.")
    kept = await database.read(lambda s: feedback.get(s, row.id))
    assert endings.of_row(kept, 3) == outcome


async def test_a_note_is_in_the_prompt_at_once(database: Database) -> None:
    """Its text on one line, with its tokens; the feedback is kept."""
    user = await database.write(lambda s: people.resolve(s, "http", "ana", is_learning=True))
    row, _ = await database.write(
        lambda s: feedback.add(s, Feedback(user_id=user.id, kind="note", text="call me\n Ana"))
    )
    outcome = await endings.keep_note(database, row, 2, NoteWords("call me Ana"), len)
    (note,) = await database.read(lambda s: notes.live(s, user.id))
    assert (note.text, note.state, note.num_tokens) == ("call me Ana", NoteState.IN_PROMPT, len("- call me Ana\n"))
    assert (outcome.status, outcome.note, outcome.note_id) == ("kept", "call me Ana", note.id)


async def test_a_fact_waits_for_its_question(database: Database) -> None:
    """Where its reading says so: it is in no other prompt."""
    row = await given(database)
    found = NoteWords("my dog is called Rex", NoteState.WHEN_ASKED)
    assert (await endings.keep_note(database, row, 0, found, len)).reason == endings.WAITS
    (note,) = await database.read(lambda s: notes.live(s, row.user_id))
    assert (note.text, note.state) == ("my dog is called Rex", NoteState.WHEN_ASKED)


async def test_a_note_that_is_kept_again_after_a_crash_is_the_same_note(database: Database) -> None:
    """The feedback was still open when heed died: no second note, and it ends as it would have."""
    row = await given(database)
    note = Note(user_id=row.user_id, feedback_id=row.id, text="too long", state=NoteState.IN_PROMPT, num_tokens=2)
    await database.write(lambda s: notes.add(s, note))
    outcome = await endings.keep_note(database, row, 0, NoteWords("too long"), len)
    assert (outcome.status, outcome.note) == ("kept", "too long")
    assert [n.text for n in await database.read(lambda s: notes.live(s, row.user_id))] == ["too long"]


async def test_what_was_cancelled_meanwhile_is_neither_kept_nor_noted(database: Database) -> None:
    """Feedback that has ended keeps its status."""
    row = await given(database)
    await endings.cancel(database, row.id)
    assert (await endings.keep(database, row, 0, "reason")).status == "cancelled"
    assert (await endings.keep_note(database, row, 0, NoteWords("too long"), len)).note is None
    assert await database.read(lambda s: notes.live(s, row.user_id)) == []
