"""engine.learning.wording: the words in which a note is kept."""

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from engine.config import EngineConfig, LearnConfig
from engine.learning import wording
from storage.database import Database
from storage.kinds import FeedbackKind, Meaning, NoteState
from storage.learning import feedback, notes
from storage.people import people
from storage.tables import Feedback, Note


class Reads:
    """A reader that takes everything for the same."""

    def __init__(self, meaning: Meaning | None, *, is_sure: bool = False) -> None:
        self._meaning, self._is_sure = meaning, is_sure

    async def read(self, text: str) -> Any:
        """Return the reading, or None as without a probe."""
        return SimpleNamespace(label=self._meaning, margin=0.9, is_sure=self._is_sure) if self._meaning else None


@pytest.mark.parametrize(
    ("meaning", "shows_rewrites", "kept"),
    [
        (Meaning.WISH, False, "Answer very briefly."),
        (Meaning.FACT, False, "you ramble, keep it short"),
        (None, False, "you ramble, keep it short"),
        (Meaning.WISH, True, "you ramble, keep it short"),
    ],
)
async def test_a_small_model_is_told_a_wish_as_an_instruction(
    meaning: Meaning | None, shows_rewrites: bool, kept: str, tmp_path: Any
) -> None:
    """What is read as a wish; anything else, and a wide model's notes, stay in the person's words."""
    config = EngineConfig("pocket", tmp_path)
    config = replace(config, learn=replace(LearnConfig(), shows_rewrites=shows_rewrites))
    host = SimpleNamespace(trainability=SimpleNamespace(can_learn=True))
    context: Any = SimpleNamespace(config=config, reader=Reads(meaning), host=host)
    row = Feedback(user_id="u", kind=FeedbackKind.NOTE, text="you ramble,\nkeep it short")
    assert await wording.of_note(context, row) == (kept, NoteState.IN_PROMPT)


@pytest.mark.parametrize(
    ("meaning", "is_sure", "kind", "can_learn", "is_stored"),
    [
        (Meaning.FACT, True, FeedbackKind.NOTE, True, True),
        (Meaning.FACT, False, FeedbackKind.NOTE, True, False),
        (Meaning.WISH, True, FeedbackKind.NOTE, True, False),
        (None, True, FeedbackKind.NOTE, True, False),
        (Meaning.FACT, True, FeedbackKind.CORRECTION, True, False),  # which the lesson has read, if there was one
        (Meaning.FACT, True, FeedbackKind.NOTE, False, False),  # nothing reads on a model that is served only
    ],
)
async def test_a_note_that_is_surely_a_fact_is_stored_as_read_so(
    database: Database, meaning: Meaning | None, is_sure: bool, kind: FeedbackKind, can_learn: bool, is_stored: bool
) -> None:
    """A consolidation then asks about it, and shows it to no teacher of anything else; a small model waits with it."""
    user = await database.write(lambda s: people.resolve(s, "http", "ana"))
    row, _ = await database.write(
        lambda s: feedback.add(s, Feedback(user_id=user.id, kind=kind, text="my dog is called Rex"))
    )
    host = SimpleNamespace(trainability=SimpleNamespace(can_learn=can_learn))
    for is_small in (False, True):
        config = SimpleNamespace(learn=LearnConfig(facts_in_message=is_small))
        reader = Reads(meaning, is_sure=is_sure)
        context: Any = SimpleNamespace(config=config, reader=reader, host=host, database=database)
        state = NoteState.WHEN_ASKED if is_small and is_stored else NoteState.IN_PROMPT
        assert await wording.of_note(context, row) == ("my dog is called Rex", state)
    note = Note(user_id=user.id, feedback_id=row.id, text=row.text)
    kept = await database.write(lambda s: notes.add(s, note))
    assert await database.read(lambda s: notes.facts(s, user.id)) == ({kept.id} if is_stored else set())
