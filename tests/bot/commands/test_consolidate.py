"""bot.commands.consolidate: waiting for a consolidation, and the line about it."""

import pytest

from bot.commands.consolidate import consolidate, line, rebuild
from bot.errors import NotReady
from engine.requests import ConsolidationOutcome
from tests.bot.conftest import Heed, StartHeed


@pytest.mark.parametrize(
    ("outcome", "words"),
    [
        (None, "Queued. It begins as soon as every lesson is learned."),
        (
            ConsolidationOutcome("learned", 3, num_new=52, duration_ms=4100),
            "Consolidated: v3 from 52 new signals in 4.1 s.",
        ),
        (
            ConsolidationOutcome("learned", 3, num_new=2, num_rehearsed=7, duration_ms=900),
            "Consolidated: v3 from 2 new signals and 7 earlier lessons in 0.9 s.",
        ),
        (
            ConsolidationOutcome("learned", 3, num_new=1, num_better=4, duration_ms=900),
            "Consolidated: v3 from 1 new signal and 4 better answers in 0.9 s.",
        ),
        (ConsolidationOutcome("rejected", 2, "Answers you liked would have lost facts."),
         "Not consolidated. Answers you liked would have lost facts."),
        (ConsolidationOutcome("kept", 2, "there is nothing new"), "Nothing changed. There is nothing new."),
        (
            ConsolidationOutcome("learned", 4, num_rehearsed=7, duration_ms=900, is_rebuild=True),
            "Made again from zero: v4 from 0 new signals and 7 earlier lessons in 0.9 s.",
        ),
        (ConsolidationOutcome("rejected", 2, "It is worse.", is_rebuild=True), "Not rebuilt. It is worse."),
    ],
)  # fmt: skip
def test_the_line_says_what_became_of_it(outcome: ConsolidationOutcome | None, words: str) -> None:
    """In the words of somebody who does not know how heed is made."""
    assert line(outcome) == words


async def test_it_does_not_wait_for_ever(start_heed: StartHeed) -> None:
    """Like a lesson, it goes on without whoever asked."""
    heed = await start_heed(chat={"learn_timeout_s": 0.01})
    heed.engine.learn_delay_s = 3600
    assert await consolidate(heed.core, "anybody") is None
    assert await rebuild(heed.core, "anybody") is None


async def test_it_is_refused_while_heed_is_not_ready(heed: Heed) -> None:
    """Whoever asks may try again."""
    heed.engine.is_ready = False
    with pytest.raises(NotReady):
        await consolidate(heed.core, "anybody")
    with pytest.raises(NotReady):
        await rebuild(heed.core, "anybody")
