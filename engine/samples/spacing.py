"""Choices from longer lists: even spacing, and new items mixed with earlier ones. Pure."""

from collections.abc import Sequence
from typing import TypeVar

T = TypeVar("T")
U = TypeVar("U")


def mix(new: Sequence[T], earlier: Sequence[U], places: int, new_share: float) -> tuple[list[T], list[U]]:
    """Return the oldest of `new` and some of `earlier`, evenly spaced, in the wanted shares; at most `places` in all.

    Places that one list cannot fill go to the other.
    """
    taken = list(new[: max(round(places * new_share), places - len(earlier))])
    return taken, spread(earlier, places - len(taken))


def spread(items: Sequence[T], count: int) -> list[T]:
    """Return `count` of the items at even distances, in their order, the first among them."""
    count = max(0, min(count, len(items)))
    return [items[i * len(items) // count] for i in range(count)]
