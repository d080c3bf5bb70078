"""bot.core.standing_notes: where a person's notes are now."""

import pytest

from bot.core.standing_notes import WAITING, StandingNotes
from storage.kinds import NoteState
from storage.tables import Note


def note(name: str, state: NoteState) -> Note:
    """A note of three tokens."""
    return Note(id=name, user_id="ana", text=name, state=state, num_tokens=3)


@pytest.mark.parametrize(
    ("state", "is_in_prompt", "shown"),
    [
        (NoteState.IN_PROMPT, True, "in_prompt"),
        (NoteState.IN_PROMPT, False, WAITING),
        (NoteState.LEARNING, False, WAITING),
        (NoteState.LEARNING, True, "learning"),
        (NoteState.WHEN_ASKED, False, "when_asked"),
        (NoteState.IN_WEIGHTS, False, "in_weights"),
    ],
)
def test_a_note_for_the_prompt_that_is_not_there_waits(state: NoteState, is_in_prompt: bool, shown: str) -> None:
    """Only a note that belongs into the prompt can wait for room in it."""
    one = note("a", state)
    assert StandingNotes([one], frozenset(["a"] if is_in_prompt else [])).state(one) == shown


def test_only_what_the_weights_hold_is_saved() -> None:
    """A note that waits saves nothing; one of the weights that is still in the prompt saves nothing either."""
    live = [note("held", NoteState.IN_WEIGHTS), note("both", NoteState.IN_WEIGHTS), note("out", NoteState.IN_PROMPT)]
    standing = StandingNotes(live, frozenset(["both"]))
    assert (standing.tokens_in_prompt, standing.tokens_saved) == (3, 3)


@pytest.mark.parametrize(
    ("argument", "found"),
    [("delete 1", "a"), ("delete2", "b"), ("delete 3", None), ("delete 0", None), ("delete x", None)],
)
def test_a_note_is_named_by_its_place(argument: str, found: str | None) -> None:
    """Counted from 1, the oldest first."""
    standing = StandingNotes([note("a", NoteState.IN_PROMPT), note("b", NoteState.IN_PROMPT)], frozenset())
    named = standing.numbered(argument)
    assert (named.id if named else None) == found
