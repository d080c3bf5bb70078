"""tests.storage.atomicity: the checker itself, on histories that are known, and against a search through all orders."""

import random
from itertools import permutations

import pytest

from tests.storage.atomicity import INITIAL, Operation, faults


def write(value: int, begun_s: float, ended_s: float = float("inf")) -> Operation:
    """A write."""
    return Operation(True, value, begun_s, ended_s)


def read(value: int, begun_s: float, ended_s: float) -> Operation:
    """A read."""
    return Operation(False, value, begun_s, ended_s)


@pytest.mark.parametrize(
    "history",
    [
        [],
        [read(0, 0, 1), write(1, 2, 3), read(1, 4, 5)],
        [write(1, 0, 10), read(0, 1, 2), read(1, 3, 4)],  # while it is written, first the old value, then the new
        [write(1, 0), read(1, 5, 6)],  # its writer was killed, and it was stored
        [write(1, 0), read(0, 5, 6)],  # or it was not
    ],
)
def test_a_right_history_has_no_faults(history: list[Operation]) -> None:
    """There is an order in which each read gives what was written last."""
    assert faults(history) == []


@pytest.mark.parametrize(
    "history",
    [
        [write(1, 0, 1), read(0, 2, 3)],  # an old value after a new one was acknowledged
        [write(1, 0, 10), read(1, 1, 2), read(0, 3, 4)],  # or was shown
        [read(1, 0, 1), write(1, 2, 3)],
        [read(1, 0, 1)],
        [write(1, 0, 1), write(1, 2, 3)],
        [write(1, 0, 1), write(2, 2, 3), read(2, 4, 5), read(1, 6, 7)],
    ],
)
def test_a_wrong_history_is_found(history: list[Operation]) -> None:
    """Nobody could have seen this of one register."""
    assert faults(history) != []


@pytest.mark.parametrize("seed", range(300))
def test_it_agrees_with_a_search_through_all_orders(seed: int) -> None:
    """Histories of five operations in random times, right and wrong ones."""
    rng = random.Random(seed)
    history = []
    for value in (1, 2):
        begun_s = rng.uniform(0, 4)
        history.append(write(value, begun_s, begun_s + rng.uniform(0.1, 3)))
    for _ in range(3):
        begun_s = rng.uniform(0, 6)
        history.append(read(rng.choice((0, 1, 1, 2, 2)), begun_s, begun_s + rng.uniform(0.1, 3)))
    assert (faults(history) == []) == has_an_order(history)


def has_an_order(history: list[Operation]) -> bool:
    """True if some order keeps to the times and gives every read the value written last."""
    return any(is_in_time(order) and is_right(order) for order in permutations(history))


def is_in_time(order: tuple[Operation, ...]) -> bool:
    """Whatever ended before another began comes before it."""
    pairs = ((first, later) for n, first in enumerate(order) for later in order[n + 1 :])
    return all(later.ended_s >= first.begun_s for first, later in pairs)


def is_right(order: tuple[Operation, ...]) -> bool:
    """Each read gives the value that was written last."""
    value = INITIAL
    for operation in order:
        if operation.is_write:
            value = operation.value
        elif operation.value != value:
            return False
    return True
