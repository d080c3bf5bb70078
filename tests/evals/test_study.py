"""One evaluation while it runs."""

import pytest

from engine.pocket import WEIGHTS
from engine.prompts.bank import load_bank
from evals.arms import TaughtLesson
from evals.client import Client
from evals.config import EvalConfig
from evals.journal import Journal
from evals.study import Study, rehearsed_prompts
from tests.evals.fake_heed import FakeHeed, serving

QUESTION = "Where does the alpaca live?"


async def test_the_base_model_is_asked_each_question_once() -> None:
    """The answers before a correction are the same for everybody."""
    fake = FakeHeed()
    async with serving(fake) as url, Client(url) as client:
        study = Study(EvalConfig(), client, Journal(), lambda _: None)
        first = await study.before([QUESTION, QUESTION])
        assert await study.before([QUESTION]) == first[:1]
    assert len(fake.asked) == 1


async def test_people_are_erased_from_a_heed_that_is_somebody_elses() -> None:
    """A heed given by its address keeps no person of the evaluation; its own heed is thrown away whole."""
    fake = FakeHeed()
    async with serving(fake) as url, Client(url) as client:
        for config in (EvalConfig(), EvalConfig(url=url)):
            study = Study(config, client, Journal(config.url[:4] or "own"), lambda _: None)
            async with study.pair("x", 1) as pair:
                await pair.noted.note("leave the emojis out")
            await study.before([QUESTION])
            await study.close()
    assert list(fake.users) == ["eval-own-x-1-n", "eval-own-base"]


async def test_a_unit_that_is_done_is_not_done_again() -> None:
    """The bar moves as far as it did when the unit was done."""
    journal, bar = Journal(), list[str]()
    for _ in range(2):
        study = Study(EvalConfig(), None, journal, bar.append)  # type: ignore[arg-type]  # asks nothing

        async def work(study: Study = study) -> None:
            study.advance("notes")
            study.advance("notes")
            study.record("notes", 0, text="done")

        await study.once("notes/0", work)
    assert (len(journal.records), bar) == (1, ["notes"] * 4)


async def test_a_part_may_have_a_unit_for_each_seed_and_preference() -> None:
    """Each is given its own seed and preference, under a name of its own; one that is done is left out."""
    journal, given = Journal(), list[tuple[int, str]]()
    journal.done["fresh/1/name"] = 1
    config = EvalConfig(seeds=2, preferences=("units", "name"))
    study = Study(config, None, journal, lambda _: None)  # type: ignore[arg-type]  # asks nothing

    async def work(seed: int, preference: str) -> None:
        given.append((seed, preference))

    await study.once_each("fresh", work)
    assert given == [(0, "units"), (0, "name"), (1, "units")]
    assert set(journal.done) == {f"fresh/{seed}/{name}" for seed, name in config.seeded_preferences}


@pytest.mark.parametrize(("goes_on", "notes"), [(True, 2), (False, 1)])
async def test_after_an_interruption_people_begin_anew_unless_they_go_on(goes_on: bool, notes: int) -> None:
    """The interrupted run's lessons are forgotten with its people."""
    fake = FakeHeed()
    async with serving(fake) as url, Client(url) as client:
        for journal in (first := Journal(), Journal(first.run_id)):
            study = Study(EvalConfig(), client, journal, lambda _: None)
            async with study.pair("x", goes_on=goes_on) as pair:
                await pair.noted.note("leave the emojis out")
        assert len(fake.users[pair.noted.name].notes) == notes


def test_observations_carry_their_part_and_seed() -> None:
    """A lesson is told apart from a judged answer."""
    study = Study(EvalConfig(), None, Journal(), lambda _: None)  # type: ignore[arg-type]  # asks nothing
    study.record("notes", 3, arm="notes", holds=True)
    study.lesson("adoption", 4, TaughtLesson("learned", 1, "", 0.5, 0.1, True, (), {}), preference="emoji")
    assert study.records[0] == {"part": "notes", "seed": 3, "arm": "notes", "holds": True}
    assert (study.records[1]["event"], study.records[1]["status"]) == ("lesson", "learned")


def test_a_model_that_is_not_on_this_machine_rehearses_the_shipped_bank() -> None:
    """Without a bank of its own a model uses the one heed ships."""
    assert "What is 6 plus 7?" in rehearsed_prompts("Qwen/Qwen3-8B")


def test_what_the_pocket_model_rehearses_comes_from_its_own_bank() -> None:
    """heed calls it by its name, which is no folder: its anchors must not be asked as skills all the same."""
    own = load_bank(WEIGHTS)
    assert rehearsed_prompts("pocket") == {*own.topics, *own.anchors}
