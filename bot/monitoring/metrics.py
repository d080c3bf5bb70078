"""Counters and histograms of the chat side, for Prometheus.

Owns one registry per running heed. Labels are few and fixed: never a person, a text or an id.
"""

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

SECONDS = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)


class Metrics:
    """Everything heed counts."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.requests = Counter(
            "heed_http_requests", "HTTP requests by route and status", ["route", "status"], registry=self.registry
        )
        self.answers = Counter("heed_answers", "Answers by how they ended", ["finish_reason"], registry=self.registry)
        self.tokens = Counter("heed_tokens", "Tokens by kind", ["kind"], registry=self.registry)
        self.first_token_s = Histogram(
            "heed_time_to_first_token_seconds", "Until the first token", buckets=SECONDS, registry=self.registry
        )
        self.answer_s = Histogram("heed_answer_seconds", "Whole answers", buckets=SECONDS, registry=self.registry)
        self.feedback = Counter("heed_feedback", "Feedback by kind", ["kind"], registry=self.registry)
        self.lessons = Counter("heed_lessons", "Updates by outcome", ["status"], registry=self.registry)
        self.lesson_s = Histogram("heed_lesson_seconds", "Whole updates", buckets=SECONDS, registry=self.registry)
        self.streams = Gauge("heed_streams", "Answers being written now", registry=self.registry)
        self.waiting = Gauge("heed_streams_waiting", "Answers that wait for a place", registry=self.registry)
        self.parts = Gauge("heed_part_up", "1 where a part works", ["part"], registry=self.registry)
        self.updates = Counter(
            "heed_platform_updates", "Platform updates taken", ["platform", "outcome"], registry=self.registry
        )
        self.update_s = Histogram(
            "heed_platform_update_seconds", "Handling of a platform update", buckets=SECONDS, registry=self.registry
        )
        self.posts = Counter(
            "heed_posts", "What was shown on platforms", ["platform", "outcome"], registry=self.registry
        )
        self.waited_s = Counter(
            "heed_platform_wait_seconds", "Waits platforms asked for", ["platform"], registry=self.registry
        )
        self.errors = Counter("heed_unexpected_errors", "Unexpected errors", ["edge"], registry=self.registry)

    def render(self) -> bytes:
        """Return the exposition text."""
        return generate_latest(self.registry)
