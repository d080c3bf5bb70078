"""Retention and closed questions of `heed eval real`."""

from pathlib import Path

from engine.prompts.bank import load_bank
from evals.journal import Journal
from evals.real.run import PART_WORK, RealConfig
from evals.real.score import summarise
from evals.real.sequence import BRIEFLY, CLOSED, NUM_CHATS
from evals.real.study import RealStudy
from evals.real.world import says
from tests.evals.brief_heed import BriefHeed, served


def test_there_are_two_hundred_closed_questions() -> None:
    """All different, none of them an anchor, each with an answer that the check accepts."""
    assert len({question for question, _ in CLOSED}) == 200
    assert not {question for question, _ in CLOSED} & set(load_bank(Path("no such model")).anchors)
    assert all(says(f"It is {accepted.split('|')[0]}.", accepted) for _, accepted in CLOSED)


async def test_one_person_serves_both_parts() -> None:
    """Two lessons with ten chats between; both parts ask the same person, the base is asked once for two seeds."""
    heed, journal = BriefHeed(), Journal()
    config = RealConfig(wishes=("shorter", "lowercase"), prompts=4, seeds=2)
    async for client in served(heed):
        study = RealStudy(config, client, journal, lambda _: None)
        for seed in range(2):
            for part in ("retention", "closed"):
                await PART_WORK[part](study, seed)
    assert len(heed.corrected) == 4
    assert sum(user.endswith("sequence-0") for user, _ in heed.asked) == 2 + NUM_CHATS + 4 + len(CLOSED)
    of_base = [text for user, text in heed.asked if user.endswith("-base")]
    assert len(of_base) == len(set(of_base)) > len(CLOSED)
    found = summarise(journal.records)
    ratios = {(row["part"], row["wish"]): row["ratio"] for row in found["wishes"]}
    assert ratios["retention", "shorter"] == 1.0
    of_noted = {text for user, text in heed.asked if user.endswith("closed-0-n")}
    assert of_noted == {question + BRIEFLY for question, _ in CLOSED}
    assert found["closed"] == {
        "base": 0.0, "weights": 0.0, "points_lost": 0.0, "worst": 0.0, "note": 0.0, "note_points_lost": 0.0,
    }  # fmt: skip


async def test_a_person_who_learns_nothing_holds_nothing() -> None:
    """The ratio is held against the ceiling with all notes in the prompt."""
    journal = Journal()
    async for client in served(BriefHeed(learns=False)):
        study = RealStudy(RealConfig(wishes=("shorter",), prompts=4), client, journal, lambda _: None)
        await PART_WORK["retention"](study, 0)
    assert summarise(journal.records)["figures"]["retention"]["mean"] == 0.0
