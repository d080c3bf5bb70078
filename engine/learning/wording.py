"""The words of a note that a person gives or that is made of a correction no update is run for.

A small model is told a wish as the plain instruction it is (`engine.prompts.wish_forms`). Invariants: what is no wish,
by the model's own reading of it, stays in the person's words; a note that is surely a fact is stored as read so.
"""

from engine.prompts.wish_forms import instruction_of
from engine.samples.context import LearningContext
from engine.samples.lessons import note_text
from storage.kinds import FeedbackKind, Meaning
from storage.learning import feedback
from storage.tables import Feedback


async def of_note(context: LearningContext, row: Feedback) -> str:
    """Return the text of the note that feedback becomes. Raises as the trainer does."""
    words = note_text(row)
    instruction = "" if context.config.learn.shows_rewrites else instruction_of(words)
    is_note = row.kind == FeedbackKind.NOTE and context.host.trainability.can_learn
    reading = await context.reader.read(words) if instruction or is_note else None
    if reading is None:
        return words
    if is_note and reading.label == Meaning.FACT and reading.is_sure:
        margin = reading.margin
        await context.database.write(lambda s: feedback.note_reading(s, row.id, Meaning.FACT, margin, is_unsure=False))
    return instruction if instruction and reading.label == Meaning.WISH else words
