"""engine.learning.wording: the words in which a note is kept."""

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from engine.config import EngineConfig, LearnConfig
from engine.learning import wording
from storage.kinds import FeedbackKind, Meaning
from storage.tables import Feedback


class Reads:
    """A reader that takes everything for the same."""

    def __init__(self, meaning: Meaning | None) -> None:
        self._meaning = meaning

    async def read(self, text: str) -> Any:
        """Return the reading, or None as without a probe."""
        return SimpleNamespace(label=self._meaning) if self._meaning else None


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
    context: Any = SimpleNamespace(config=config, reader=Reads(meaning))
    row = Feedback(user_id="u", kind=FeedbackKind.NOTE, text="you ramble,\nkeep it short")
    assert await wording.of_note(context, row) == kept
