"""The three arms."""

from aiohttp.test_utils import TestServer

from evals import cases
from evals.arms import BOTH, NOTES, WEIGHTS, Pair, TaughtPerson
from evals.client import Client
from evals.config import EvalConfig
from evals.verdict import follows
from tests.evals.brief_heed import BriefHeed
from tests.evals.fake_heed import FakeHeed, serving

ABOUT = cases.corrected(0, 1)[0]
WISH = cases.wish_for(0, ("layout", 1))
PROBES = cases.probes(0, 3)


async def test_the_arms_differ_in_what_they_may_use() -> None:
    """With weights that learn nothing, the notes alone carry the wish, and only where they are in the prompt."""
    fake = FakeHeed("deaf", settles=False)
    async with serving(fake) as url, Client(url) as client:
        pair = Pair(client, "ana", EvalConfig(settle_s=1))
        lesson = await pair.teach(ABOUT, WISH)
        answers = await pair.answers(PROBES)
    held = {arm: [follows(text, WISH) for text in texts] for arm, texts in answers.items()}
    assert held == {NOTES: [True] * 3, WEIGHTS: [False] * 3, BOTH: [True] * 3}
    assert not lesson.is_settled


async def test_only_the_trained_one_is_corrected() -> None:
    """The noted person has a note and no version; the trained one has both."""
    fake = FakeHeed()
    async with serving(fake) as url, Client(url) as client:
        await Pair(client, "ana", EvalConfig()).teach(ABOUT, WISH)
    assert (fake.user("ana-n").active, fake.user("ana-t").active) == (0, 1)
    assert [len(fake.user(name).notes) for name in ("ana-n", "ana-t")] == [1, 1]


async def test_a_lesson_tells_what_became_of_the_correction() -> None:
    """Status, version, seconds and heed's own figures, without the heat map."""
    async with serving(FakeHeed()) as url, Client(url) as client:
        lesson = await TaughtPerson(client, "ana", EvalConfig()).correct(ABOUT, WISH.text)
    assert (lesson.status, lesson.version, lesson.is_settled, lesson.note_states) == (
        "learned",
        1,
        True,
        ("in_weights",),
    )
    assert lesson.update == {"steps": 10, "phases_ms": {"train": 5.0}}
    assert lesson.to_record()["note_states"] == ["in_weights"]
    assert 0 <= lesson.seconds < 60


async def test_a_lesson_that_outlasts_its_call_is_waited_for() -> None:
    """What is measured behind it would be measured in the middle of it."""
    heed = BriefHeed()
    heed.queues = True
    async with TestServer(heed.application()) as server, Client(str(server.make_url("")).rstrip("/")) as client:
        lesson = await TaughtPerson(client, "ana", EvalConfig()).correct(ABOUT, "be brief")
    assert (lesson.status, lesson.version) == ("learned", 1)


async def test_a_pair_can_be_erased() -> None:
    """Nothing of either stays behind."""
    fake = FakeHeed()
    async with serving(fake) as url, Client(url) as client:
        pair = Pair(client, "ana", EvalConfig())
        await pair.teach(ABOUT, WISH)
        await pair.forget()
    assert fake.users == {}
