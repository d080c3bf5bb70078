"""From samples to rows."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.figures import Row, p95, row


@pytest.mark.parametrize(
    ("samples", "expected"), [([3.0], 3.0), ([1.0, 2.0], 1.95), ([float(n) for n in range(1, 22)], 20.0)]
)
def test_p95_lies_between_the_two_nearest_samples(samples: list[float], expected: float) -> None:
    """Interpolated as numpy's percentile does."""
    assert p95(samples) == pytest.approx(expected)


@given(st.lists(st.floats(0, 1e6), min_size=1, max_size=50))
def test_p95_is_never_beyond_the_samples(samples: list[float]) -> None:
    """The 95th percentile lies between the median and the largest sample, in any order."""
    found = row("x", "ms", samples)
    assert found.p95 is not None
    assert found.median <= found.p95 * (1 + 1e-9) + 1e-9
    assert found.p95 <= max(samples) * (1 + 1e-9)


def test_a_row_is_judged_by_the_number_its_target_is_for() -> None:
    """A median within the target does not save a 95th percentile beyond it."""
    samples = [1.0] * 10 + [9.0] * 10
    assert row("x", "s", samples, target=5.0).is_met is True
    assert row("x", "s", samples, target=5.0, judged="p95").is_met is False
    assert row("x", "s", samples).is_met is None


def test_a_single_number_has_no_p95() -> None:
    """A ratio is judged by itself."""
    assert Row("x", "ratio", 2.9, None, 3.0).is_met is True
    assert Row("x", "ratio", 3.1, None, 3.0).to_json()["is_met"] is False
