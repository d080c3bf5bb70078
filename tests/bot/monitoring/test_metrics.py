"""bot.monitoring.metrics: counts, without people."""

from bot.monitoring.metrics import Metrics


def test_what_is_counted_is_rendered() -> None:
    """A counter that went up is in the exposition text."""
    metrics = Metrics()
    metrics.feedback.labels("correction").inc()
    assert b'heed_feedback_total{kind="correction"} 1.0' in metrics.render()


def test_two_heeds_count_apart() -> None:
    """Each has a registry of its own: making a second one neither fails nor shares."""
    first, second = Metrics(), Metrics()
    first.errors.labels("http").inc()
    assert b"heed_unexpected_errors_total{" not in second.render()
