"""engine.errors: the tree is what its drawing says."""

import inspect
import re

import pytest

from engine import errors
from engine.errors import EngineError

LEAVES = [
    leaf
    for _, leaf in inspect.getmembers(errors, inspect.isclass)
    if issubclass(leaf, EngineError) and not leaf.__subclasses__()
]


@pytest.mark.parametrize("leaf", LEAVES)
def test_every_leaf_is_drawn_with_the_standard_error_it_also_is(leaf: type[EngineError]) -> None:
    """Callers that know only Python's errors still tell one leaf from another, and the drawing names both."""
    drawn = re.search(rf"── {leaf.__name__} \(also (\w+)\)", errors.__doc__ or "")
    assert drawn is not None
    assert drawn[1] in {base.__name__ for base in leaf.__mro__ if base.__module__ == "builtins"} - {"Exception"}


def test_the_drawing_names_only_what_exists() -> None:
    """No leaf was removed without its line."""
    drawn = re.findall(r"── (\w+)", errors.__doc__ or "")
    assert {name for name in drawn if not hasattr(errors, name)} == set()


def test_only_a_restart_passes_by_itself() -> None:
    """The same call succeeds later only where the engine is being restarted, and the drawing says so."""
    assert {leaf.__name__ for leaf in LEAVES if leaf.retryable} == {"EngineRestarting"}
    assert re.findall(r"(\w+) \(also \w+\) +retryable", errors.__doc__ or "") == ["EngineRestarting"]
