"""Tests of the parts of a running engine."""

from types import SimpleNamespace
from typing import Any

import pytest

from engine.errors import ModelUnsuitable
from engine.parts import Parts
from tests.engine.live import Live
from tests.tiny_model import tiny_tokenizer

pytestmark = [pytest.mark.engine, pytest.mark.asyncio(loop_scope="session")]


async def test_lessons_and_consolidations_make_candidates_in_one_place(live: Live) -> None:
    """One update is open at a time, so there is one maker of candidates and one finder of facts."""
    assert live.parts.learner._candidates is live.parts.consolidator._candidates
    assert live.parts.learner._samples._facts is live.parts.consolidator._facts


async def test_a_chat_template_that_cannot_be_used_ends_the_start(live: Live) -> None:
    """The sentence comes before the first question is asked."""
    tokenizer = tiny_tokenizer()
    tokenizer.chat_template = "{% broken"
    host: Any = SimpleNamespace(tokenizer=tokenizer, model_folder=live.data_dir)
    adapters: Any = None
    with pytest.raises(ModelUnsuitable, match="chat template"):
        Parts.build(live.engine.config, live.database, host, adapters, "")
