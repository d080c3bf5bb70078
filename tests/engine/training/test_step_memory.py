"""engine.training.step_memory: what a step's activations take."""

import pytest

from engine.training.step_memory import StepMemory

EIGHT = StepMemory(num_layers=36, hidden=4096, intermediate=12_288)  # Qwen3-8B
GB = 10**9


def test_the_figures_are_those_measured_on_an_8b_model() -> None:
    """A layer keeps 295 kB a token, its input 8 kB."""
    assert EIGHT.kept(1) == 36 * 294_912
    assert EIGHT.recomputed(1) == 36 * 8192 + 294_912


@pytest.mark.parametrize(
    ("longest", "limit", "most"),
    [
        (1024, 12 * GB, EIGHT.kept(1024)),  # all is kept
        (4096, 12 * GB, 12 * GB),  # the longest that is kept needs more than the longest of all
        (4096, 1 * GB, EIGHT.recomputed(4096)),
    ],
)
def test_the_most_is_that_of_the_worst_step(longest: int, limit: int, most: int) -> None:
    """Steps below the limit keep all; those above are computed again, and may need less than the last below."""
    assert EIGHT.most(longest, limit) == most
