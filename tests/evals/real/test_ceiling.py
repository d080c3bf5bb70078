"""The ceiling of a wish: asked once, before anything is taught."""

from evals.journal import Journal, Record
from evals.real.ceiling import ask_ceiling, can_follow
from evals.real.run import RealConfig
from evals.real.study import RealStudy
from evals.real.world import REAL_WISHES
from tests.evals.brief_heed import BriefHeed, served


def answers(arm: str, *follows: bool, seed: int = 0, wish: str = "shorter") -> list[Record]:
    """Records of one arm."""
    labels = {"event": "answer", "part": "ceiling", "seed": seed, "wish": wish, "arm": arm}
    return [labels | {"follows": one} for one in follows]


def test_a_wish_counts_if_the_note_is_followed_and_changes_something() -> None:
    """At least half of the answers, and a quarter more than the base model's; unasked, nothing is known."""
    wish = REAL_WISHES["shorter"]
    half = answers("note", True, True, False, False)
    assert can_follow([*answers("base", True, False, False, False), *half], wish)
    assert not can_follow([*answers("base", True, True, False, False), *half], wish)
    assert not can_follow([*answers("base", False), *answers("note", True, False, False)], wish)
    assert not can_follow([*answers("base", False), *answers("note", True, wish="longer")], wish)
    assert not can_follow([], wish)


def test_the_words_of_all_seeds_decide_together() -> None:
    """One seed's luck is not enough."""
    wish = REAL_WISHES["shorter"]
    lucky = [*answers("base", False), *answers("note", True, True)]
    assert can_follow(lucky, wish)
    assert not can_follow([*lucky, *answers("note", False, False, False, seed=1)], wish)


async def test_it_is_asked_once_with_the_words_of_the_correction() -> None:
    """For all parts together."""
    heed, journal, wish = BriefHeed(), Journal(), REAL_WISHES["shorter"]
    async for client in served(heed):
        study = RealStudy(RealConfig(wishes=("shorter",), prompts=4, seeds=2), client, journal, lambda _: None)
        for _ in range(2):
            await ask_ceiling(study, 0, wish)
    assert list(heed.noted.values()) == [[wish.fresh[0]], [wish.fresh[1]]]
    assert [r["arm"] for r in journal.records] == (["base"] * 4 + ["note"] * 4) * 2
    assert can_follow(journal.records, wish)
