"""The arguments of a benchmark are checked before it starts."""

from typing import Any

import pytest

from bench.config import PARTS, BenchConfig
from evals.errors import ArgumentError


def test_the_defaults_are_those_of_the_table() -> None:
    """Twenty updates, five starts, sixteen streams, every part but the cluster's."""
    config = BenchConfig()
    assert (config.updates, config.starts, config.streams, config.only) == (20, 5, 16, PARTS[:-1])


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"updates": 0}, "updates wants a number from 1"),
        ({"streams": 17}, "streams wants a number from 1 to 16"),
        ({"chats": 1}, "chats wants a number from 2 to 1000"),
        ({"only": ("speed",)}, "only wants some of start, .*not speed"),
        ({"only": ()}, "not nothing"),
    ],
)
def test_a_value_nothing_can_be_measured_with_is_refused(values: dict[str, Any], message: str) -> None:
    """Every bound is checked before a heed is started."""
    with pytest.raises(ArgumentError, match=message):
        BenchConfig(**values)
