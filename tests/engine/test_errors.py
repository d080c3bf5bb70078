"""engine.errors: the kinds of the leaves, and those that may be tried again."""

import inspect

import pytest

from engine import errors
from engine.errors import EngineError, EngineRestarting, TeacherUnreachable

LEAVES = [cls for _, cls in inspect.getmembers(errors, inspect.isclass) if not cls.__subclasses__()]


@pytest.mark.parametrize("leaf", LEAVES)
def test_every_leaf_is_an_engine_error_and_a_standard_one(leaf: type[Exception]) -> None:
    """Every leaf is an EngineError and an error of Python's own, so callers can tell kinds apart."""
    assert issubclass(leaf, EngineError)
    assert any(base.__module__ == "builtins" and base is not Exception for base in leaf.__mro__[1:-3])


@pytest.mark.parametrize("leaf", LEAVES)
def test_the_tree_in_the_docstring_names_every_leaf(leaf: type[Exception]) -> None:
    """The drawing is the documentation."""
    assert errors.__doc__ is not None
    assert leaf.__name__ in errors.__doc__


def test_only_what_may_come_back_is_worth_asking_again() -> None:
    """Only a restarting engine and an unreachable teacher are retryable; all else would fail again."""
    assert {leaf for leaf in LEAVES if leaf.retryable} == {EngineRestarting, TeacherUnreachable}  # type: ignore[attr-defined]
