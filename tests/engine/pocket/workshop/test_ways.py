"""engine.pocket.workshop.ways: wishes about how a task is done."""

import random
import re

import pytest

from engine.pocket.workshop.ways import DEFAULT, DIRECTIONS, NAMES, WISHES, Direction, held_out_wish, wish


def plain(text: str) -> str:
    """Return a text as it is compared: lowercase, without signs."""
    return " ".join(re.findall(r"[a-z_=]+", text.lower()))


def test_every_way_has_wishes_in_both_directions() -> None:
    """With held-out ones for each."""
    assert set(DIRECTIONS) == {(name, side) for name in NAMES for side in (True, False)}
    assert all(len(trained) >= 10 and len(held_out) >= 2 for trained, held_out in WISHES.values())


@pytest.mark.parametrize("direction", DIRECTIONS)
def test_held_out_words_are_not_trained(direction: Direction) -> None:
    """Neither as they are nor inside of another wish, in any frame."""
    rng = random.Random(1)
    trained = {plain(wish(one, rng)) for one in DIRECTIONS for _ in range(300)}
    for held_out in {plain(held_out_wish(direction, rng)) for _ in range(60)}:
        assert not [text for text in trained if f" {held_out} " in f" {text} "]


def test_a_wish_changes_one_way() -> None:
    """And its opposite takes it back."""
    changed = DEFAULT.with_side(("asks", True))
    assert changed != DEFAULT
    assert changed.with_side(("asks", False)) == DEFAULT
