"""The errors a measurement ends with."""

import pytest

from evals.errors import ArgumentError, CallRefused, EvalError, HeedUnreachable, StartFailed


@pytest.mark.parametrize(
    ("leaf", "stdlib"),
    [
        (ArgumentError, ValueError),
        (StartFailed, RuntimeError),
        (HeedUnreachable, ConnectionError),
        (CallRefused, RuntimeError),
    ],
)
def test_every_leaf_is_one_of_ours_and_of_the_standard_library(leaf: type[EvalError], stdlib: type[Exception]) -> None:
    """A caller can catch either family."""
    assert issubclass(leaf, EvalError)
    assert issubclass(leaf, stdlib)


def test_a_refusal_carries_its_status() -> None:
    """The HTTP status is kept beside the message."""
    assert CallRefused("no", 400).status == 400
