"""engine.samples.spacing: some of many, at even distances and in shares."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.config import ConsolidationConfig
from engine.samples.spacing import mix, spread

CONFIG = ConsolidationConfig()
lists = st.lists(st.integers(), max_size=60)


@given(lists, lists, st.integers(1, 40), st.floats(0, 1))
def test_the_mix_fills_its_places_and_no_more(new: list[int], earlier: list[int], places: int, share: float) -> None:
    """Both parts come from their lists, together they fill what can be filled, and nobody is left out for nothing."""
    taken, replay = mix(new, earlier, places, share)
    assert taken == new[: len(taken)]
    assert len(taken) + len(replay) == min(places, len(new) + len(earlier))
    assert len(replay) <= max(places - round(places * share), places - len(new))


@given(st.integers(24, 60), st.integers(24, 60))
def test_with_enough_of_both_it_is_seventy_to_thirty(num_new: int, num_earlier: int) -> None:
    """17 of 24 places for what is new, 7 for what was taught before."""
    taken, replay = mix(range(num_new), range(num_earlier), CONFIG.num_lessons, CONFIG.new_share)
    assert (len(taken), len(replay)) == (17, 7)


@given(lists, st.integers(-3, 80))
def test_what_is_spread_keeps_its_order_and_its_first(items: list[int], count: int) -> None:
    """Even distances, none twice."""
    places = spread(list(range(len(items))), count)
    assert places == sorted(set(places))
    assert len(places) == max(0, min(count, len(items)))
    assert not places or places[0] == 0


@pytest.mark.parametrize(
    ("count", "expected"), [(0, []), (1, [0]), (3, [0, 3, 6]), (10, list(range(10))), (50, list(range(10)))]
)
def test_the_choice_is_spread_over_the_history(count: int, expected: list[int]) -> None:
    """The newest is among it, and the rest at even distances."""
    assert spread(range(10), count) == expected
