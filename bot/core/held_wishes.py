"""Wishes that heed keeps in mind already: said again, they are no lesson, and the person is told so.

A correction of an answer that was given with the wish in force is a lesson: heed did not follow it. So is one with a
scope or settings of its own.
"""

import re

from storage.conversations import completions
from storage.database import Session
from storage.kinds import FeedbackKind
from storage.learning import feedback, notes, versions
from storage.tables import Completion, Feedback, Note

ALREADY = "I already keep that in mind: "


def already(s: Session, wanted: Feedback) -> str:
    """Return what the person is told if a note of theirs holds this wish, empty if it is a new one."""
    if wanted.kind not in (FeedbackKind.CORRECTION, FeedbackKind.NOTE) or wanted.scope or wanted.training is not None:
        return ""
    answer = completions.get(s, wanted.user_id, wanted.completion_id) if wanted.completion_id else None
    for note in notes.live(s, wanted.user_id):
        if _plain(wanted.text) in _wordings(s, note):
            is_lesson = wanted.kind == FeedbackKind.CORRECTION and (answer is None or _was_in_force(s, note, answer))
            return "" if is_lesson else ALREADY + note.text
    return ""


def _wordings(s: Session, note: Note) -> set[str]:
    """Return the note as it stands, and as the person said it."""
    said = [feedback.get(s, note.feedback_id).text] if note.feedback_id else []
    return {_plain(text) for text in (note.text, *said)}


def _was_in_force(s: Session, note: Note, answer: Completion) -> bool:
    """Return True if an answer had the note in its prompt, or was given by a version that had learned it."""
    if note.text in answer.notes or (note.learned_version and note.learned_version <= answer.adapter_version):
        return True
    taught = [made.number for made in versions.history(s, note.user_id) if made.feedback_id == note.feedback_id]
    return note.feedback_id is not None and any(number <= answer.adapter_version for number in taught)


def _plain(text: str) -> str:
    """Return a text without what makes no difference to a wish: case, blanks, the marks around it."""
    return re.sub(r"\s+", " ", text).strip(" .!,;:\"'").casefold()
