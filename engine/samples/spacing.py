"""Choices from longer lists: evenly spaced, and new items mixed with earlier ones. Pure."""

from collections.abc import Sequence
from typing import TypeVar

T = TypeVar("T")
U = TypeVar("U")


def spread(items: Sequence[T], count: int) -> list[T]:
    """Return `count` of the items at even distances, in their order, the first among them."""
    count = max(0, min(count, len(items)))
    return [items[i * len(items) // count] for i in range(count)]


def mix(new: Sequence[T], earlier: Sequence[U], places: int, new_share: float) -> tuple[list[T], list[U]]:
    """Return the oldest of `new` and some of `earlier`, spread over them, in the shares asked for.

    Both together take at most `places`; what one side cannot fill goes to the other.
    """
    taken = list(new[: max(round(places * new_share), places - len(earlier))])
    return taken, spread(earlier, places - len(taken))
