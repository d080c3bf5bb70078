"""Wishes that a newer one has replaced by its words: "in English again" after "in Spanish".

With both in view a teacher says now the one and now the other. Invariants: of two wishes that exclude each other
(`engine.prompts.wish_forms`) the newer holds, in prompts and for teachers, from the moment it is a note; the older one
is superseded, not deleted, and holds again once the newer is gone.
"""

from engine.prompts.wish_forms import INSTRUCTIONS, exclude, instruction_of, tells_of_oneself
from storage.database import Session
from storage.kinds import FeedbackKind, Meaning, NoteState, Scope
from storage.learning import feedback, notes
from storage.tables import Note


def add(s: Session, note: Note) -> Note:
    """Store a note, and supersede the wishes that it replaces. Return the stored row. Raises as `notes.add`."""
    added = notes.add(s, note)
    settle(s, note.user_id)
    return added


def replaced_by(s: Session, note: Note) -> list[Note]:
    """Return the superseded wishes whose place a live wish has taken, and no live one before it had."""
    own = next((form for _, form in _with_forms(s, [note])), "")
    others = [form for wish, form in _with_forms(s, notes.live(s, note.user_id)) if wish.id != note.id]
    gone = [(wish, instruction_of(wish.text)) for wish in notes.in_state(s, note.user_id, NoteState.SUPERSEDED)]
    return [wish for wish, form in gone if exclude(own, form) and not any(exclude(other, form) for other in others)]


def bring_back(s: Session, user_id: str) -> None:
    """Return every superseded note to the prompt, but for those that a live one still replaces."""
    for note in notes.in_state(s, user_id, NoteState.SUPERSEDED):
        notes.set_state(s, note.id, NoteState.IN_PROMPT)
    settle(s, user_id)


def settle(s: Session, user_id: str) -> None:
    """Supersede every wish that a newer live one replaces."""
    wishes = _with_forms(s, notes.live(s, user_id))
    for place, (older, form) in enumerate(wishes):
        if any(exclude(newer, form) for _, newer in wishes[place + 1 :]):
            notes.set_state(s, older.id, NoteState.SUPERSEDED)


def _with_forms(s: Session, found: list[Note]) -> list[tuple[Note, str]]:
    """Return the wishes for a plain form among some notes, each with its instruction: a text is read once."""
    formed = [(note, instruction_of(note.text)) for note in found]
    return [(note, form) for note, form in formed if form and _is_wish(s, note)]


def _is_wish(s: Session, note: Note) -> bool:
    """Return True if a note is a plain instruction or was meant as a wish: "I teach English" asks for no language.

    A told note that nothing has read is taken for a wish unless it tells of the person.
    """
    if note.text in INSTRUCTIONS:
        return True
    said = feedback.get(s, note.feedback_id) if note.feedback_id is not None else None
    if said is None:
        return False
    is_told = said.kind == FeedbackKind.NOTE and not said.reading and not tells_of_oneself(note.text)
    return is_told or said.reading == Meaning.WISH or said.scope == Scope.ALWAYS
