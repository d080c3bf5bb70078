"""The words of a note that a person gives or that is made of a correction no update is run for.

A small model is told a wish as the plain instruction it is (`engine.prompts.wish_forms`). Invariant: what is no wish,
by the model's own reading of it, stays in the person's words.
"""

from engine.prompts.wish_forms import instruction_of
from engine.samples.context import LearningContext
from engine.samples.lessons import note_text
from storage.kinds import Meaning
from storage.tables import Feedback


async def of_note(context: LearningContext, row: Feedback) -> str:
    """Return the text of the note that feedback becomes. Raises as the trainer does."""
    words = note_text(row)
    instruction = "" if context.config.learn.shows_rewrites else instruction_of(words)
    reading = await context.reader.read(words) if instruction else None
    return instruction if reading is not None and reading.label == Meaning.WISH else words
