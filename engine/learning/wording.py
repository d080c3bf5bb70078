"""The words and the place of a note that a person gives or that is made of a correction no update is run for.

A small model is told a wish as the plain instruction it is (`engine.prompts.wish_forms`), and a fact beside the
questions that call it up alone: among its instructions it would say it in answer to everything (ADR 47). Invariants:
what is no wish, by the model's own reading of it, stays in the person's words; a note that is surely a fact is stored
as read so.
"""

from engine.learning.endings import NoteWords
from engine.prompts.wish_forms import instruction_of
from engine.samples.context import LearningContext
from engine.samples.lessons import note_text
from storage.kinds import FeedbackKind, Meaning, NoteState
from storage.learning import feedback
from storage.tables import Feedback


async def of_note(context: LearningContext, row: Feedback) -> NoteWords:
    """Return the note that feedback becomes. Raises as the trainer does."""
    words = note_text(row)
    instruction = "" if context.config.learn.shows_rewrites else instruction_of(words)
    is_note = row.kind == FeedbackKind.NOTE and context.host.trainability.can_learn
    reading = await context.reader.read(words) if instruction or is_note else None
    if reading is None:
        return NoteWords(words)
    if is_note and reading.label == Meaning.FACT and reading.is_sure:
        margin = reading.margin
        await context.database.write(lambda s: feedback.note_reading(s, row.id, Meaning.FACT, margin, is_unsure=False))
        return NoteWords(words, NoteState.WHEN_ASKED if context.config.learn.facts_in_message else NoteState.IN_PROMPT)
    return NoteWords(instruction if instruction and reading.label == Meaning.WISH else words)
