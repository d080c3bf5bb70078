"""engine.errors: the kinds of the leaves, and those that may be tried again."""

import inspect

from engine import errors
from engine.errors import EngineError, EngineGone, EngineRestarting, TeacherUnreachable

LEAVES = [cls for _, cls in inspect.getmembers(errors, inspect.isclass) if not cls.__subclasses__()]


def test_every_leaf_has_its_kind_and_says_if_it_may_be_tried_again() -> None:
    """Every leaf is also an error of Python's own; an engine that restarts or is gone and an unreachable teacher are
    retryable.
    """
    for leaf in LEAVES:
        assert issubclass(leaf, EngineError)
        assert any(base.__module__ == "builtins" and base is not Exception for base in leaf.__mro__[1:-3])
    assert {leaf for leaf in LEAVES if leaf.retryable} == {EngineGone, TeacherUnreachable}  # type: ignore[attr-defined]
    assert EngineRestarting.retryable
