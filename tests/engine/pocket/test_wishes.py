"""engine.pocket.wishes: every wish means one thing, and held-out phrasings are never trained."""

import random
import re
from collections import defaultdict
from functools import cache

from hypothesis import given
from hypothesis import strategies as st

from engine.pocket import wishes
from engine.pocket.hints import HINTS
from engine.pocket.style import DEFAULT, DIRECTIONS, Direction
from engine.pocket.wishes import COMMANDS, HELD_OUT_NAMES, NAMES, REMARKS, apply, held_out_wish, wish

directions = st.sampled_from(DIRECTIONS)
seeds = st.integers(0, 2**32).map(random.Random)


def plain(text: str) -> str:
    """Return a wish without capitals and without a sign at its end."""
    return re.sub(r"\s+", " ", text.lower()).strip(" .!?")


def bare(text: str) -> str:
    """Return a wish without any sign."""
    return re.sub(r"[\s.!?,;]+", " ", text.lower()).strip()


@cache
def trained_forms() -> dict[Direction, list[str]]:
    """Return every text of a trained wish before typos, with the name left open."""
    commands = {d: [*COMMANDS[d][0], *wishes.COMPOSED_COMMANDS[d]] for d in DIRECTIONS}
    remarks = {d: [*REMARKS[d][0], *wishes.COMPOSED_REMARKS[d]] for d in DIRECTIONS}
    return {
        d: [f.format(c=c) for f in wishes._FRAMES for c in commands[d]]
        + [f.format(c=c) for f in wishes._REMARK_FRAMES for c in remarks[d]]
        for d in DIRECTIONS
    }


@cache
def held_out_forms() -> dict[Direction, list[str]]:
    """Return every text of the evaluation, with the name left open."""
    return {
        d: [*COMMANDS[d][1], *REMARKS[d][1], *(f.format(c=c) for f in wishes._HELD_OUT_FRAMES for c in COMMANDS[d][0])]
        for d in DIRECTIONS
    }


def test_every_direction_has_many_phrasings_and_some_held_out() -> None:
    """Each of the 24 directions has at least thirty trained phrasings and at least four held out."""
    for d in DIRECTIONS:
        assert len({*COMMANDS[d][0], *REMARKS[d][0]}) >= 30
        assert len({*COMMANDS[d][1], *REMARKS[d][1]}) >= 4


def test_no_wish_means_two_things() -> None:
    """No text, trained or held out, is a phrasing of two directions."""
    owners = defaultdict(set)
    for forms in (trained_forms(), held_out_forms()):
        for d, texts in forms.items():
            for text in texts:
                owners[plain(text)].add(d)
    assert {text: found for text, found in owners.items() if len(found) > 1} == {}


def test_no_held_out_phrasing_can_be_made_in_training() -> None:
    """No held-out text is a trained command or remark in one of the trained frames, signs aside."""
    trained = {bare(text) for texts in trained_forms().values() for text in texts}
    held_out = {bare(text) for texts in held_out_forms().values() for text in texts}
    assert held_out & trained == set()


def test_no_held_out_name_is_in_the_list() -> None:
    """Held-out names are never trained names; that none is invented either shows the world's own test."""
    assert not {*HELD_OUT_NAMES} & {*NAMES}


@given(directions, seeds)
def test_a_held_out_wish_is_held_out(direction: Direction, rng: random.Random) -> None:
    """A wish of the evaluation is one of the held-out forms, with the name filled in."""
    text = held_out_wish(direction, "Nils", rng)
    assert "{" not in text
    assert text in [form.replace("{x}", "Nils") for form in held_out_forms()[direction]]


@given(st.lists(directions, min_size=1, max_size=3, unique_by=lambda d: d[0]), seeds)
def test_a_wish_is_one_line_of_text_with_its_name_whole(wanted: list[Direction], rng: random.Random) -> None:
    """No placeholder is left over, and a typo never reaches the name."""
    text = wish(wanted, "Zacharias", rng)
    assert text.strip() == text
    assert not re.search(r"[{}\0\n]", text)
    assert ("name", 1) not in wanted or "Zacharias" in text


@given(directions)
def test_a_granted_wish_changes_its_preference_and_nothing_else(direction: Direction) -> None:
    """Applying a direction sets that preference to its side and leaves the other eleven."""
    preference, side = direction
    granted = apply(DEFAULT, [direction], "Ana")
    other = apply(granted, [(preference, 0)], "Ana")
    assert other == DEFAULT
    assert (granted == DEFAULT) is (side == 0)


def test_the_later_of_two_wishes_wins() -> None:
    """If two directions of one message disagree, the last one holds."""
    assert apply(DEFAULT, [("length", 1), ("length", 0)], "").length == "long"
    assert apply(DEFAULT, [("name", 1)], "Ana").name == "Ana"


def has_core(text: str, direction: Direction) -> bool:
    """Return True if a message has a trained phrasing of the direction."""
    listed = (*COMMANDS[direction][0], *REMARKS[direction][0])
    composed = (*wishes.COMPOSED_COMMANDS[direction], *wishes.COMPOSED_REMARKS[direction])
    return any(core in text.lower() for core in (*listed, *composed))


def test_messages_are_typed_as_people_type() -> None:
    """Among a thousand wishes some carry a slip of the fingers, a "please" or a capital, and none carries all."""
    rng = random.Random(0)
    said = [wish([("length", 1)], "", rng) for _ in range(1000)]
    known = {bare(text) for text in trained_forms()[("length", 1)]}
    assert 50 < sum(bare(text) not in known for text in said) < 200
    assert 50 < sum("please" in text.lower() for text in said) < 500
    assert 200 < sum(text[0].isupper() for text in said) < 800


def test_one_message_can_carry_several_wishes() -> None:
    """A message with two directions says both, but for slips of the fingers."""
    rng = random.Random(0)
    wanted: list[Direction] = [("length", 1), ("emoji", 1)]
    said = [wish(wanted, "", rng) for _ in range(200)]
    assert sum(all(has_core(text, d) for d in wanted) for text in said) > 160


def test_a_share_of_single_wishes_are_hints() -> None:
    """All are if all shall be, with the name in them; none is where several things are wished for at once."""
    rng = random.Random(0)
    known = {bare(hint.replace("{x}", "Ana")) for hint in HINTS["name", 1]}
    said = [bare(wish([("name", 1)], "Ana", rng, 1.0)) for _ in range(200)]
    assert sum(text in known for text in said) > 150  # the others have a slip of the fingers
    wanted: list[Direction] = [("length", 1), ("emoji", 1)]
    several = [wish(wanted, "", rng, 1.0) for _ in range(200)]
    assert sum(all(has_core(text, d) for d in wanted) for text in several) > 160
