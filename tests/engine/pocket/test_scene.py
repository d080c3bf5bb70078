"""engine.pocket.scene: the wishes that are drawn for a conversation."""

import random

from engine.pocket.scene import START, Scene, directions_apart, draw_wish, grant, number_of_wishes
from engine.pocket.style import DEFAULT, PREFERENCES
from engine.pocket.subjects import HELD_OUT_SUBJECTS
from engine.pocket.wishes import HELD_OUT_NAMES, NAMES


def test_wishes_apart_are_about_different_preferences() -> None:
    """No preference is drawn twice, and all of them can be drawn at once."""
    directions = directions_apart(Scene(random.Random(1)), len(PREFERENCES))
    assert sorted(preference for preference, _ in directions) == sorted(PREFERENCES)


def test_a_granted_wish_changes_the_style() -> None:
    """The style before the wish is remembered, and held-out subjects may not appear any more."""
    scene = Scene(random.Random(1))
    grant(scene, [("length", 1)], "Ana")
    assert scene.style == DEFAULT.with_value("length", PREFERENCES["length"][1])
    assert (scene.previous, scene.is_plain) == (DEFAULT, False)


def test_people_ask_for_a_change_more_often_than_for_what_they_have() -> None:
    """About five of six wishes are for the side that does not hold."""
    scene = Scene(random.Random(1), START)
    sides = [side for _ in range(500) for _, side in directions_apart(scene, 1)]
    assert 0.8 < sum(sides) / len(sides) < 0.9


def test_no_invented_name_is_held_out() -> None:
    """Neither a held-out name nor a held-out subject is ever made up, and most invented names differ."""
    scene = Scene(random.Random(1))
    invented = {draw_wish(scene, 1)[2] for _ in range(5000)} - set(NAMES)
    assert len(invented) > 1000
    assert invented.isdisjoint({*HELD_OUT_NAMES, *(s.name.capitalize() for s in HELD_OUT_SUBJECTS)})


def test_most_messages_wish_for_one_thing() -> None:
    """One wish is usual, and three are the most."""
    rng = random.Random(1)
    numbers = [number_of_wishes(rng) for _ in range(1000)]
    assert numbers.count(1) > 700
    assert set(numbers) == {1, 2, 3}
