"""Prompts and wishes for any model."""

import pytest

from evals.real.world import PROMPTS, REAL_WISHES, RealWish, compatible, real_prompts, says
from evals.wish_checks import CHECKS


def test_there_are_enough_prompts_and_no_two_splits_share_one() -> None:
    """At least eighty, of six kinds in each of three splits."""
    assert len(PROMPTS) >= 80
    assert len({p.turns for p in PROMPTS}) == len(PROMPTS)
    assert len({(p.split, p.kind) for p in PROMPTS}) == 18


def test_every_check_has_a_wish_and_every_opposite_exists() -> None:
    """A wish that is taken back is taken back by another one."""
    assert set(REAL_WISHES) == set(CHECKS)
    assert {w.opposite for w in REAL_WISHES.values() if w.opposite} <= set(REAL_WISHES)


@pytest.mark.parametrize("wish", REAL_WISHES.values(), ids=lambda w: w.name)
def test_fresh_phrasings_are_none_of_the_tuned_ones(wish: RealWish) -> None:
    """Nor the note."""
    fresh, tuned = set(wish.fresh), set(wish.tuned)
    assert len(fresh) >= 2
    assert not fresh & tuned


def test_a_draw_is_of_its_split_and_the_same_again() -> None:
    """Six prompts are of six kinds."""
    drawn = real_prompts(1, "test", 6, "probes")
    assert drawn == real_prompts(1, "test", 6, "probes")
    assert len({p.kind for p in drawn}) == 6
    assert {p.split for p in drawn} == {"test"}


def test_a_conversation_ends_with_the_person() -> None:
    """The roles alternate."""
    prompt = next(p for p in PROMPTS if p.kind == "multi-turn")
    assert [m["role"] for m in prompt.messages] == ["user", "assistant", "user"]


def test_an_accepted_answer_is_a_whole_word() -> None:
    """Of any case; one of several is enough."""
    assert says("It's PARIS.", "Paris")
    assert says("1,000 metres", "1000|1,000")
    assert not says("Parisian", "Paris")
    assert not says("", "Paris")


@pytest.mark.parametrize("seed", range(20))
def test_wishes_in_a_row_can_be_followed_together(seed: int) -> None:
    """No two lengths, layouts or cases; Spanish only where too few others are left; the same draw again."""
    drawn = [wish.name for wish in compatible(seed, list(REAL_WISHES), 4)]
    assert drawn == [wish.name for wish in compatible(seed, list(reversed(REAL_WISHES)), 4)]
    assert len(drawn) == 4
    assert "spanish" not in drawn
    for clash in ({"shorter", "longer", "one_sentence", "concise"}, {"lowercase", "capitals"}, {"emoji", "no_emoji"}):
        assert len(clash & set(drawn)) <= 1
    assert [wish.name for wish in compatible(seed, ["spanish"], 4)] == ["spanish"]


def test_an_answer_that_says_the_wish_back_does_not_follow_it() -> None:
    """A small model repeats what stands in its prompt: the name is there, but no answer is."""
    name = REAL_WISHES["name"]
    assert name.is_followed("Bees make it from nectar, Mira.", "Bees make it.")
    assert not any(name.is_followed(said, "Bees make it.") for said in name.fresh)


def test_the_question_said_again_is_no_short_answer() -> None:
    """It is as short as was wished, and no answer."""
    base = "Bees make it from the nectar of flowers, which they carry home and dry with their wings."
    shorter = REAL_WISHES["shorter"]
    assert shorter.is_followed("From nectar.", base, "how do bees make honey?")
    assert not shorter.is_followed("How do bees make honey?", base, "how do bees make honey?")
