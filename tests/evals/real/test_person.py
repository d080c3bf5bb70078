"""The parts of `heed eval real` with one wish a person, on a heed whose mind is known."""

from typing import Any

import pytest

from evals.client import Client
from evals.journal import Journal
from evals.real.run import PART_WORK, RealConfig
from evals.real.score import summarise
from evals.real.study import RealStudy
from evals.real.world import real_prompts
from tests.evals.brief_heed import LESSONS, LONG, PLAIN, SHORT, BriefHeed, served


def study_of(client: Client, journal: Journal, *wishes: str) -> RealStudy:
    """A small study."""
    return RealStudy(RealConfig(wishes=wishes, prompts=4, seeds=1), client, journal, lambda _: None)


def row_of(journal: Journal, part: str) -> dict[str, Any]:
    """The row of a part with one wish."""
    return next(row for row in summarise(journal.records)["wishes"] if row["part"] == part)


@pytest.mark.parametrize("part", ["adoption", "rewritten"])
@pytest.mark.parametrize("learns", [True, False])
async def test_what_is_learned_is_adopted_and_nothing_else(part: str, learns: bool) -> None:
    """All of it or nothing: the ratio says which, and so does the share of accepted lessons."""
    journal = Journal()
    async for client in served(BriefHeed(learns=learns)):
        await PART_WORK[part](study_of(client, journal, "shorter"), 0)
    found = summarise(journal.records)
    row = row_of(journal, part)
    assert (row["ratio"], row["answers"]) == (float(learns), 4)
    assert found["accepted"]["all"] == float(learns)
    assert found["followable"] == {"wishes": 1, "of": 1}


async def test_an_answer_is_rewritten_into_one_that_follows_the_wish(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first train prompt whose answer with the note does; a person's own words would."""
    heed, text = BriefHeed(), BriefHeed.text
    prompts = real_prompts(0, "train", 4, "corrected", "shorter")
    missed = {prompt.question for prompt in prompts[:2]}

    def once_missed(self: BriefHeed, body: dict[str, Any]) -> str:
        return LONG if body["messages"][-1]["content"] in missed and "rewritten" in body["user"] else text(self, body)

    monkeypatch.setattr(BriefHeed, "text", once_missed)
    async for client in served(heed):
        await PART_WORK["rewritten"](study_of(client, Journal(), "shorter"), 0)
    assert [words for _, words in heed.corrected] == [SHORT]
    trained = [question for user, question in heed.asked if user.endswith("-t")]
    assert trained[0] == prompts[2].question


async def test_what_the_model_cannot_follow_is_not_taught() -> None:
    """The words of the first seed's capitals say nothing to it: asked, passed over, and no ratio."""
    journal, heed = Journal(), BriefHeed()
    async for client in served(heed):
        for part in ("adoption", "rewritten"):
            await PART_WORK[part](study_of(client, journal, "capitals"), 0)
    assert heed.corrected == []
    assert {r["part"] for r in journal.records} == {"ceiling"}
    assert summarise(journal.records)["followable"] == {"wishes": 0, "of": 1}


@pytest.mark.parametrize("part", ["adoption", "rewritten", "reversal"])
async def test_each_wish_has_persons_of_its_own(part: str) -> None:
    """No wish is measured on the persons of another."""
    journal, heed = Journal(), BriefHeed()
    async for client in served(heed):
        await PART_WORK[part](study_of(client, journal, "shorter", "longer"), 0)
    taught = {r["person"]: r["wish"] for r in journal.records if r["event"] == "lesson"}
    assert {f"{part}/{wish}/0" for wish in ("shorter", "longer")} <= set(journal.done)
    assert len(taught) == 2
    noted = {user for user, _ in heed.asked if "-ceiling-" in user or user.endswith("-n")}
    assert {user.split("-")[3] for user in noted} == {"shorter", "longer"}


async def test_a_reversal_takes_back_what_was_adopted() -> None:
    """The one who has adopted the wish is corrected once by its opposite: two lessons for both parts."""
    journal, heed = Journal(), BriefHeed()
    async for client in served(heed):
        study = study_of(client, journal, "shorter")
        await PART_WORK["adoption"](study, 0)
        await PART_WORK["reversal"](study, 0)
    row = row_of(journal, "reversal")
    assert (row["wish"], row["base"], row["weights"], row["ratio"], row["answers"]) == ("longer", 0, 1, 1, 4)
    assert len({user for user, _ in heed.corrected}) == 1
    assert len(heed.corrected) == 2


async def test_more_detail_is_held_against_the_answer_before(monkeypatch: pytest.MonkeyPatch) -> None:
    """It need not be longer than the base model's, which a limit of length may have cut."""
    for word in ("more", "deeper"):
        monkeypatch.setitem(LESSONS, word, "Ten words are as many as the plain answer has.")
    journal = Journal()
    async for client in served(BriefHeed()):
        await PART_WORK["reversal"](study_of(client, journal, "shorter"), 0)
    row = row_of(journal, "reversal")
    assert (row["base"], row["note"], row["ratio"]) == (0, 1, 1)


async def test_what_was_never_adopted_is_no_reversal() -> None:
    """Without an answer that the first lesson moved there is no ratio."""
    journal = Journal()
    async for client in served(BriefHeed(learns=False)):
        await PART_WORK["reversal"](study_of(client, journal, "shorter"), 0)
    row = row_of(journal, "reversal")
    assert (row["ratio"], row["answers"], row["asked"]) == (None, 0, 4)


async def test_adoption_and_reversal_judge_different_prompts() -> None:
    """The person has asked the first ones between the two lessons."""
    heed = BriefHeed()
    async for client in served(heed):
        study = study_of(client, Journal(), "shorter")
        await PART_WORK["adoption"](study, 0)
        first = {text for user, text in heed.asked if "taught" in user}
        heed.asked.clear()
        await PART_WORK["reversal"](study, 0)
    assert not first & {text for user, text in heed.asked if "taught" in user}


async def test_a_unit_that_broke_off_begins_anew_and_one_that_is_done_does_not() -> None:
    """Its own persons are forgotten; the person whose lesson is done is not."""
    lesson = {"event": "lesson", "person": "real-abc-taught-shorter-0", "wish": "shorter", "version": 1}
    lesson |= {"seconds": 1.0, "is_accepted": True}
    journal, heed = Journal("abc", [lesson], {"taught/shorter/0": 1}), BriefHeed()
    heed.versions["real-abc-taught-shorter-0"] = ["plain", "short"]
    async for client in served(heed):
        await PART_WORK["adoption"](study_of(client, journal, "shorter"), 0)
        await PART_WORK["adoption"](study_of(client, journal, "shorter"), 0)
    assert heed.forgotten == ["real-abc-ceiling-shorter-0"]
    assert heed.corrected == []
    assert sum(r.get("arm") == "note" for r in journal.records) == 4


async def test_a_reversal_that_broke_off_goes_back_to_the_first_lesson() -> None:
    """Its second lesson is taught again to the version that the first one left; else nothing moves before it."""
    lesson = {"event": "lesson", "person": "real-abc-taught-shorter-0", "wish": "shorter", "version": 1}
    lesson |= {"seconds": 1.0, "is_accepted": True}
    journal, heed = Journal("abc", [lesson], {"taught/shorter/0": 1}), BriefHeed()
    heed.versions["real-abc-taught-shorter-0"], heed.active["real-abc-taught-shorter-0"] = [PLAIN, SHORT, LONG], 2
    async for client in served(heed):
        await PART_WORK["reversal"](study_of(client, journal, "shorter"), 0)
    row = row_of(journal, "reversal")
    assert (row["base"], row["ratio"], row["answers"]) == (0, 1.0, 4)
    assert heed.versions["real-abc-taught-shorter-0"] == [PLAIN, SHORT, LONG, LONG]
