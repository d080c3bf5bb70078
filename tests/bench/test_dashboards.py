"""Each dashboard is timed on a database that has much in it, and judged."""

from bench import dashboards
from bench.config import BenchConfig


async def test_every_page_is_timed() -> None:
    """As often as there are rounds, and the bar comes to its end."""
    told: list[str] = []
    config = BenchConfig(only=("dashboards",), completions=600, stored=60, rounds=2)
    samples = await dashboards.measure(config, told.append)
    assert {len(took_ms) for took_ms in samples.values()} == {2}
    assert {"overview", "one conversation", "one update", "two versions", "engine"} <= samples.keys()
    assert told == ["dashboards"] * dashboards.units(config)


def test_a_page_is_judged_by_its_slow_ones() -> None:
    """The 95th percentile within 300 ms."""
    rows = dashboards.rows({"quick": [10.0] * 20, "slow": [10.0] * 18 + [400.0] * 2})
    assert [row.is_met for row in rows] == [True, False]
