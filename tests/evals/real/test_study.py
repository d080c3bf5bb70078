"""The means of every part of `heed eval real`."""

from evals.journal import Journal, Record
from evals.real.run import RealConfig
from evals.real.study import RealStudy
from evals.real.world import REAL_WISHES
from tests.evals.brief_heed import BriefHeed, served


async def test_the_base_model_is_asked_once() -> None:
    """For all parts."""
    heed = BriefHeed()
    async for client in served(heed):
        study = RealStudy(RealConfig(prompts=3), client, Journal(), lambda _: None)
        asked = study.probes(0, REAL_WISHES["shorter"])
        assert await study.base_answers(asked) == await study.base_answers(asked)
    assert len(heed.asked) == 3


async def lesson_of(heed: BriefHeed) -> Record:
    """Return the record of one lesson that a person gives to this heed."""
    journal = Journal()
    async for client in served(heed):
        study = RealStudy(RealConfig(), client, journal, lambda _: None)
        await study.correct("ana", REAL_WISHES["shorter"], study.probes(0)[0], 0)
    (lesson,) = journal.records
    return lesson


async def test_a_lesson_that_takes_longer_than_its_call_is_waited_for() -> None:
    """What became of it is asked for by its address."""
    heed = BriefHeed()
    heed.queues = True
    lesson = await lesson_of(heed)
    assert (lesson["status"], lesson["is_accepted"], lesson["version"]) == ("learned", True, 1)


async def test_a_person_who_is_asked_how_far_a_correction_reaches_says_from_now_on() -> None:
    """The record tells that heed asked, and what became of the lesson then."""
    heed = BriefHeed()
    heed.is_unsure = True
    lesson = await lesson_of(heed)
    assert heed.chosen == ["fb-ana always"]
    assert (lesson["was_asked"], lesson["status"], lesson["version"]) == (True, "learned", 1)
