"""The arguments of `heed bench gpu`."""

import pytest

from bench.gpu.config import GpuBenchConfig
from evals import arguments
from evals.errors import ArgumentError


@pytest.mark.parametrize(
    ("words", "named"),
    [
        (["only=nothing"], "lesson, serving"),
        (["only="], "lesson, serving"),
        (["lessons=0"], "lessons"),
        (["streams=1000"], "streams"),
        (["adapters=1,1000"], "adapters"),
        (["adapters="], "adapters"),
        (["device=tpu"], "cuda or cpu"),
    ],
)
def test_what_cannot_be_measured_is_refused_by_name(words: list[str], named: str) -> None:
    """Before anything is loaded."""
    with pytest.raises(ArgumentError, match=named):
        arguments.parse(GpuBenchConfig, words)


def test_numbers_of_adapters_are_a_list() -> None:
    """With commas."""
    assert arguments.parse(GpuBenchConfig, ["adapters=0,4"]).adapters == (0, 4)
