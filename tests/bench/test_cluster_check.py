"""bench.cluster_check: the figures and the table; a whole run needs a PostgreSQL server and a quarter of an hour."""

import io

import pytest
from rich.console import Console

from bench.cluster_check import CheckConfig, RealOutcome, figures, table
from bench.cluster_model import SimulatedOutcome
from evals.errors import ArgumentError

REAL = RealOutcome(latencies=[0.4, 0.5, 0.9], num_read=25, num_fetched=20, restart_s=18.0)


def simulated(num_fetches: int = 20, num_loads: int = 5, latency_s: float = 0.5) -> SimulatedOutcome:
    """What the model says."""
    return SimulatedOutcome(latencies=[latency_s], num_fetches=num_fetches, num_loads=num_loads)


@pytest.mark.parametrize(
    ("model", "off"),
    [
        (simulated(), 0.0),
        (simulated(num_fetches=22, num_loads=3), 10.0),
        (simulated(num_loads=10), 20.0),
        (simulated(latency_s=0.4), 20.0),
    ],
)
def test_the_figure_that_differs_most_counts(model: SimulatedOutcome, off: float) -> None:
    """Of adapters read, adapters fetched, and answers."""
    found = figures(2, REAL, model)
    assert found["off"] == pytest.approx(off)
    assert (found["engines"], found["answers"], found["restart_s"]) == (2, 3, 18.0)


def test_the_table_shows_both_sides() -> None:
    """The real figure first."""
    written = io.StringIO()
    Console(file=written, width=150).print(table([figures(2, REAL, simulated(latency_s=0.45))]))
    assert "25 / 25" in written.getvalue()
    assert "0.5 / 0.45" in written.getvalue()


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({}, "database wants"),
        ({"database": "postgresql://x/y", "engines": "0"}, "engines wants"),
        ({"database": "postgresql://x/y", "seconds": 1.0}, "seconds wants"),
        ({"database": "postgresql://x/y", "a_second": 0.0}, "a_second wants"),
        ({"database": "postgresql://x/y", "people": 2}, "people wants"),
    ],
)
def test_nonsense_is_refused(values: dict[str, object], message: str) -> None:
    """With the argument's name."""
    with pytest.raises(ArgumentError, match=message):
        CheckConfig(**values)  # type: ignore[arg-type]
    assert CheckConfig(database="postgresql://x/y", engines="2,1,2").counts == [1, 2]
