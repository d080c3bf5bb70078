"""bot.monitoring.metrics: counts, without people."""

from bot.monitoring.metrics import Metrics
from engine.requests import EngineLoad


def test_what_is_counted_is_rendered() -> None:
    """A counter that went up is in the exposition text."""
    metrics = Metrics()
    metrics.feedback.labels("correction").inc()
    assert b'heed_feedback_total{kind="correction"} 1.0' in metrics.render()


def test_engines_are_told_of_while_they_are_there() -> None:
    """One that is gone is not left with what it said last."""
    metrics = Metrics()
    metrics.see_engines({"engine-1": EngineLoad(num_people=3), "engine-2": EngineLoad(num_fetched=5)})
    assert b'heed_engine_people{engine="engine-1"} 3.0' in metrics.render()
    assert b'heed_engine_adapters_fetched{engine="engine-2"} 5.0' in metrics.render()
    metrics.see_engines({"engine-2": EngineLoad()})
    assert b"engine-1" not in metrics.render()


def test_two_heeds_count_apart() -> None:
    """Each has a registry of its own: making a second one neither fails nor shares."""
    first, second = Metrics(), Metrics()
    first.errors.labels("http").inc()
    assert b"heed_unexpected_errors_total{" not in second.render()
