"""engine.config.checks: the reasons for which a setting is refused."""

from typing import Any

import pytest

from engine.config.checks import ConfigError, require_choice, require_range, require_type


@pytest.mark.parametrize("value", [0, 3, float("nan"), float("inf")])
def test_a_value_outside_its_range_is_refused_by_name(value: float) -> None:
    """The message names the setting, its value and both ends of the range; NaN lies in no range."""
    with pytest.raises(ConfigError, match=r"^learn\.steps is .*: set it between 1 and 2$"):
        require_range("learn.steps", value, 1, 2)


def test_both_ends_belong_to_a_range() -> None:
    """The lowest and the highest value are taken."""
    require_range("learn.steps", 1, 1, 2)
    require_range("learn.steps", 2, 1, 2)


def test_an_unknown_choice_is_refused_with_the_known_ones() -> None:
    """The message lists the values that can be set."""
    with pytest.raises(ConfigError, match=r"^learn\.schedule is 'zigzag': use one of constant, linear$"):
        require_choice("learn.schedule", "zigzag", ("constant", "linear"))


@pytest.mark.parametrize(
    ("value", "default"),
    [("1", 1), (1.5, 1), (True, 1), (True, 1.0), (1, True), (10**400, 1.0), ((1, "b"), (0.9,)), ("all", None)],
)
def test_a_value_of_another_type_than_the_default_is_refused(value: Any, default: Any) -> None:
    """A boolean is no number, an entry of a list counts like the list, and a float must be finite."""
    with pytest.raises(ConfigError, match=r"^learn\.x "):
        require_type("learn.x", value, default)


@pytest.mark.parametrize(("value", "default"), [(1, 2.0), (None, None), (20, None), ((1, 0.5), (0.9,)), ("a", "b")])
def test_a_value_of_the_type_of_the_default_is_taken(value: Any, default: Any) -> None:
    """An integer counts as a float; a default of None takes an integer, too."""
    require_type("learn.x", value, default)
