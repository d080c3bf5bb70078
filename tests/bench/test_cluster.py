"""bench.cluster: the rows of the table; a whole run needs a PostgreSQL server and three minutes."""

import pytest

from bench import cluster
from bench.config import BenchConfig
from evals.errors import ArgumentError

SAMPLES = {
    "way_ms": [2.0] * 99 + [8.0],
    "one_s": [4.0, 4.0, 4.0],
    "both_s": [2.0, 2.4, 2.0],
    "gap_s": [0.1, 2.0],
    "lesson_s": [11.0],
    "others": [1.5],
}


def test_each_figure_of_a_cluster_has_its_target() -> None:
    """The way within 10 ms, two engines as fast as 1.8, a lost engine's people answered, the others not slowed."""
    rows = {row.name: row for row in cluster.rows(SAMPLES)}
    assert {name: row.is_met for name, row in rows.items() if row.target is not None} == {
        "way to an engine and back, 99th percentile": True,
        "the same answers by two engines / by one, time": True,
        "an engine's death to its people's answers, longest": True,
        "  other people's 99th percentile, after / before": False,
    }
    assert rows["the same answers by two engines / by one, time"].median == pytest.approx(0.5)
    assert rows["an engine's death to its people's answers, longest"].median == pytest.approx(2.0)


def test_a_cluster_is_measured_on_a_servers_database() -> None:
    """An empty one, which the argument names."""
    with pytest.raises(ArgumentError, match="database=postgresql"):
        BenchConfig(only=("cluster",))
    assert BenchConfig(only=("cluster",), database="postgresql://x/y").database
    assert cluster.units(BenchConfig(rounds=2)) == 5
