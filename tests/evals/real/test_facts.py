"""The part `facts` of `heed eval real`."""

import pytest

from evals.journal import Journal
from evals.real import facts as real_facts
from evals.real.facts import NUM_FACTS, TOLD, grade, told
from evals.real.run import PART_WORK, RealConfig
from evals.real.score import summarise
from evals.real.study import RealStudy
from tests.evals.brief_heed import BriefHeed, served


@pytest.mark.parametrize(
    ("text", "graded"),
    [
        ("Your dog is called Biscuit!", "right"),
        ("biscuit", "right"),
        ("Your dog is called Rex.", "made up"),
        ("Biscuits are a fine name.", "made up"),
        ("I don't know your dog's name.", "unknown"),
        ("I'm not sure.", "unknown"),
        ("You never told me.", "unknown"),
        ("I do not have that information", "unknown"),
        ("Dogs do not like cats. Yours is Max.", "made up"),
        ("", "unknown"),
    ],
)
def test_an_answer_is_right_unknown_or_made_up(text: str, graded: str) -> None:
    """A negation alone is no confession."""
    assert grade(text, "Biscuit") == graded


def test_three_seeds_tell_every_fact_once() -> None:
    """Each fact has a question with an accepted answer that stands in the note."""
    assert len({row["note"] for seed in range(3) for row in told(seed)}) == len(TOLD) == 3 * NUM_FACTS
    assert all(grade(row["note"], row["accepted"]) == "right" for row in TOLD)


async def test_facts_are_asked_after_a_consolidation(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of eight facts this heed knows two questions; what it says otherwise is made up."""
    rows = [row for row in TOLD if "dog" in row["note"] or "sister" in row["note"]]
    monkeypatch.setattr(real_facts, "told", lambda _: rows)
    journal = Journal()
    async for client in served(BriefHeed()):
        await PART_WORK["facts"](RealStudy(RealConfig(), client, journal, lambda _: None), 0)
    found = summarise(journal.records)["facts"]
    assert (found["right"], found["made_up"], found["unknown"], found["left_prompt"]) == (1.0, 0.0, 0.0, 1.0)
    assert (found["note_right"], found["untold_made_up"]) == (1.0, 1.0)
