"""The checks that every group of settings shares, and the error they raise."""

import sys
from dataclasses import fields
from typing import Any


class ConfigError(ValueError):
    """A setting has a value the engine cannot work with. Remedy: the message names the setting."""


def changed_settings(group: Any) -> list[str]:
    """Return the names of a group's settings that are not at their default."""
    defaults = type(group)()
    return [one.name for one in fields(group) if getattr(group, one.name) != getattr(defaults, one.name)]


def require(is_met: bool, message: str) -> None:
    """Raise ConfigError with the message unless the condition is met."""
    if not is_met:
        raise ConfigError(message)


def require_range(name: str, value: float, low: float, high: float) -> None:
    """Raise ConfigError unless the value lies between `low` and `high`, both included."""
    require(low <= value <= high, f"{name} is {value}: set it between {low} and {high}")


def require_type(name: str, value: Any, default: Any) -> None:
    """Raise ConfigError unless a value and its entries have the type of the default.

    An integer counts as a float; where the default is None, an integer or None is wanted.
    """
    wanted: tuple[type, ...] = (int, type(None)) if default is None else (type(default),)
    if wanted == (float,):
        wanted = (int, float)
    is_bool_for_number = isinstance(value, bool) and bool not in wanted
    require(isinstance(value, wanted) and not is_bool_for_number, f"{name} has the wrong type: {value!r}")
    require(float not in wanted or abs(value) <= sys.float_info.max, f"{name} must be a finite number")
    for entry in value if isinstance(value, tuple) else ():
        require_type(name, entry, default[0])


def require_choice(name: str, value: str, choices: tuple[str, ...]) -> None:
    """Raise ConfigError unless the value is one of the choices."""
    require(value in choices, f"{name} is {value!r}: use one of {', '.join(choices)}")
