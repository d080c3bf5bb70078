"""Standing notes."""

import pytest

from storage.errors import FeedbackNotFound, NoteNotFound
from storage.kinds import NoteState
from storage.learning import feedback, notes
from storage.tables import Note
from tests.storage import rows
from tests.storage.conftest import Store


def _note(store: Store, user_id: str, text: str = "no emoji", **fields: object) -> Note:
    return store.write(lambda s: notes.add(s, rows.note(user_id, text, **fields)))


def _live(store: Store, user_id: str) -> list[str]:
    return [note.text for note in store.read(lambda s: notes.live(s, user_id))]


@pytest.mark.parametrize(
    ("state", "is_live"),
    [
        (NoteState.IN_PROMPT, True),
        (NoteState.LEARNING, True),
        (NoteState.IN_WEIGHTS, True),
        (NoteState.SUPERSEDED, False),
        (NoteState.DELETED, False),
    ],
)
def test_a_note_holds_wherever_it_lives_until_it_is_replaced(
    store: Store, ana: str, state: NoteState, is_live: bool
) -> None:
    """In the prompt, learning and in the weights a note is live; superseded and deleted it is not."""
    note = _note(store, ana)
    store.write(lambda s: notes.set_state(s, note.id, state))
    assert _live(store, ana) == (["no emoji"] if is_live else [])
    assert store.read(lambda s: notes.get(s, ana, note.id)).state == state


def test_live_notes_come_oldest_first_and_are_the_persons_own(store: Store, ana: str, ben: str) -> None:
    """Live notes come in the order of arrival, in any state."""
    first = _note(store, ana, "first")
    _note(store, ben, "ben's")
    _note(store, ana, "second")
    store.write(lambda s: notes.set_state(s, first.id, NoteState.IN_WEIGHTS))
    assert _live(store, ana) == ["first", "second"]


def test_another_persons_note_does_not_exist(store: Store, ana: str, ben: str) -> None:
    """get() with the wrong person is the same as with a wrong id."""
    note = _note(store, ana)
    for user_id, wanted in ((ben, note.id), (ana, "note-nothing")):
        with pytest.raises(NoteNotFound):
            store.read(lambda s, user_id=user_id, wanted=wanted: notes.get(s, user_id, wanted))


def test_a_probe_result_stays_until_a_new_one(store: Store, ana: str) -> None:
    """Moving a note without figures keeps the ones it has; a probe of 0 is a figure."""
    note = _note(store, ana)
    store.write(lambda s: notes.set_state(s, note.id, NoteState.IN_WEIGHTS, probe=0.9, learned_version=3))
    kept = store.write(lambda s: notes.set_state(s, note.id, NoteState.LEARNING))
    assert (kept.probe, kept.learned_version) == (0.9, 3)
    assert store.write(lambda s: notes.set_state(s, note.id, NoteState.IN_PROMPT, probe=0.0)).probe == 0.0


def test_the_notes_of_a_lesson_are_found_by_its_feedback(store: Store, ana: str, ben: str) -> None:
    """An undo finds what a piece of feedback made, in any state, for its own person."""
    lesson, _ = store.write(lambda s: feedback.add(s, rows.feedback(ana)))
    note = _note(store, ana, feedback_id=lesson.id)
    _note(store, ana, "another")
    store.write(lambda s: notes.set_state(s, note.id, NoteState.SUPERSEDED))
    assert [found.id for found in store.read(lambda s: notes.by_feedback(s, ana, lesson.id))] == [note.id]
    assert store.read(lambda s: notes.by_feedback(s, ben, lesson.id)) == []


def test_a_note_cannot_come_from_another_persons_feedback(store: Store, ana: str, ben: str) -> None:
    """One person's words never become a note of another."""
    lesson, _ = store.write(lambda s: feedback.add(s, rows.feedback(ana)))
    with pytest.raises(FeedbackNotFound):
        _note(store, ben, feedback_id=lesson.id)


def test_notes_whose_update_died_are_in_the_prompt_again(store: Store, ana: str) -> None:
    """At start nothing is learning any more; notes in the weights stay there."""
    learning, learned = _note(store, ana, "learning"), _note(store, ana, "learned")
    store.write(lambda s: notes.set_state(s, learning.id, NoteState.LEARNING))
    store.write(lambda s: notes.set_state(s, learned.id, NoteState.IN_WEIGHTS))
    store.reopen()
    assert store.write(notes.requeue_interrupted) == 1
    states = {note.text: note.state for note in store.read(lambda s: notes.live(s, ana))}
    assert states == {"learning": NoteState.IN_PROMPT, "learned": NoteState.IN_WEIGHTS}


def test_moving_an_unknown_note_is_named(store: Store) -> None:
    """set_state() says which note is unknown."""
    with pytest.raises(NoteNotFound, match="note-nothing"):
        store.write(lambda s: notes.set_state(s, "note-nothing", NoteState.DELETED))
