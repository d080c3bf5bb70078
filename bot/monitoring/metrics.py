"""Counters and histograms of the chat side, for Prometheus.

Owns one registry per running heed. Labels are few and fixed: never a person, a text or an id.
"""

from collections.abc import Mapping

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

from engine.requests import EngineLoad

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
        self.engine_people = self._of_engines("people", "People whom an engine has, in a cluster")
        self.engine_streams = self._of_engines("streams", "Answers and rollouts being written now")
        self.engine_lessons = self._of_engines("lessons", "Lessons that wait or run")
        self.engine_adapters = self._of_engines("adapters", "Versions that answer without being read again")
        self.engine_taken_over = self._of_engines("people_taken_over", "People it took over since it started")
        self.engine_read = self._of_engines("adapters_read", "Versions it read for an answer since it started")
        self.engine_fetched = self._of_engines("adapters_fetched", "Of these, from the object store")
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

    def _of_engines(self, name: str, said: str) -> Gauge:
        return Gauge(f"heed_engine_{name}", said, ["engine"], registry=self.registry)

    def see_engines(self, loads: Mapping[str, EngineLoad]) -> None:
        """Take over what the engines say; nothing is said of one that is not there any more."""
        figures = {
            self.engine_people: "num_people",
            self.engine_streams: "num_streams",
            self.engine_lessons: "num_lessons",
            self.engine_adapters: "num_adapters",
            self.engine_taken_over: "num_taken_over",
            self.engine_read: "num_read",
            self.engine_fetched: "num_fetched",
        }
        for gauge, figure in figures.items():
            gauge.clear()
            for engine, load in loads.items():
                gauge.labels(engine).set(getattr(load, figure))

    def render(self) -> bytes:
        """Return the exposition text."""
        return generate_latest(self.registry)
