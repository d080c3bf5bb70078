"""storage.kinds: the values that columns of kinds and states hold."""

import inspect
from enum import StrEnum

from storage import kinds


def test_values_fit_their_columns_and_are_given_once() -> None:
    """Each value is a short lower-case word, and no enumeration has one twice."""
    for _, kind in inspect.getmembers(kinds, lambda one: inspect.isclass(one) and issubclass(one, StrEnum)):
        values = [str(one) for one in kind]
        assert values == [value.lower() for value in values]
        assert len(values) == len(set(values))


def test_only_corrections_and_ideals_train_at_once() -> None:
    """Every other kind waits for a consolidation, or trains nothing."""
    assert set(kinds.TAUGHT_AT_ONCE) == {"correction", "ideal"}
