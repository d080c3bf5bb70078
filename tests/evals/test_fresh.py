"""The part fresh."""

from engine.pocket import wishes
from engine.pocket.style import PREFERENCES
from evals import score
from evals.config import EvalConfig
from evals.fresh import WORDINGS, fresh_wish, units
from tests.evals.conftest import Measure
from tests.evals.fake_heed import FakeHeed


def test_every_preference_has_words_that_stand_nowhere_else() -> None:
    """Three each, and none in the pocket's phrasings, trained or held out."""
    assert set(WORDINGS) == set(PREFERENCES)
    known = {
        text for pools in (wishes.COMMANDS, wishes.REMARKS) for both in pools.values() for one in both for text in one
    }
    texts = [text for found in WORDINGS.values() for text in found]
    assert len(set(texts)) == len(texts) == 3 * len(PREFERENCES)
    assert not {text.lower() for text in texts} & known


async def test_fresh_words_have_rows_of_their_own(measure: Measure) -> None:
    """One that learns adopts them all, a deaf one none."""
    arguments = {"only": ("fresh",), "preferences": ("layout", "emoji"), "seeds": 1}
    for mind, held in (("perfect", 1.0), ("deaf", 0.0)):
        rows = score.figures(await measure(FakeHeed(mind), **arguments), ["fresh"])
        assert [row.median["weights"] for row in rows] == [held, held]


def test_a_wish_carries_the_name_it_asks_for() -> None:
    """In the words of each seed; a step of the bar for each."""
    found = [fresh_wish(seed, "name") for seed in range(3)]
    assert all(wish.name in wish.text for wish in found)
    assert len({wish.text.replace(wish.name, "") for wish in found}) == 3
    assert units(EvalConfig(seeds=3, only=("fresh",))) == 36
