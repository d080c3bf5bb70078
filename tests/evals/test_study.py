"""One evaluation while it runs."""

from evals.arms import Lesson
from evals.client import Client
from evals.config import EvalConfig
from evals.study import Record, Study, rehearsed_prompts
from tests.evals.fake_heed import FakeHeed, serving

QUESTION = "Where does the alpaca live?"


async def test_the_base_model_is_asked_each_question_once() -> None:
    """The answers before a correction are the same for everybody."""
    fake = FakeHeed()
    async with serving(fake) as url, Client(url) as client:
        study = Study(EvalConfig(), client, "run", lambda _: None)
        first = await study.before([QUESTION, QUESTION])
        assert await study.before([QUESTION]) == first[:1]
    assert len(fake.asked) == 1


async def test_people_are_erased_from_a_heed_that_is_somebody_elses() -> None:
    """A heed given by its address keeps nobody of the evaluation; its own heed is thrown away whole."""
    fake = FakeHeed()
    async with serving(fake) as url, Client(url) as client:
        for config in (EvalConfig(), EvalConfig(url=url)):
            study = Study(config, client, config.url[:4], lambda _: None)
            async with study.pair("x", 1) as pair:
                await pair.noted.note("leave the emojis out")
            await study.before([QUESTION])
            await study.close()
    assert list(fake.users) == ["eval--x-1-n", "eval--base"]


def test_observations_carry_their_part_and_seed_and_go_out_at_once() -> None:
    """A lesson is told apart from a judged answer."""
    seen: list[Record] = []
    study = Study(EvalConfig(), None, "run", lambda _: None, sink=seen.append)  # type: ignore[arg-type]  # asks nothing
    study.record("notes", 3, arm="notes", holds=True)
    study.lesson("adoption", 4, Lesson("learned", 1, "", 0.5, 0.1, True, (), {}), preference="emoji")
    assert study.records[0] == {"part": "notes", "seed": 3, "arm": "notes", "holds": True}
    assert seen == study.records
    assert (study.records[1]["event"], study.records[1]["status"]) == ("lesson", "learned")


def test_a_model_that_is_not_on_this_machine_rehearses_the_shipped_bank() -> None:
    """Without a bank of its own a model uses the one heed ships."""
    assert "What is 6 plus 7?" in rehearsed_prompts("Qwen/Qwen3-8B")
