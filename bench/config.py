"""The settings of one benchmark: what it measures and how often; every default once, checked before anything starts."""

import os
from dataclasses import dataclass

from evals import provenance
from evals.arguments import described
from evals.errors import ArgumentError

PARTS = (
    "start", "intake", "parked", "dashboards", "crowd", "training", "claas", "memory", "population", "latency",
    "throughput", "decoding", "gaps", "http", "cluster",
)  # fmt: skip
DEFAULT_PARTS = tuple(part for part in PARTS if part != "cluster")  # which needs a server's database


@dataclass(frozen=True)
class BenchConfig:
    """The arguments of `heed bench`."""

    updates: int = described(20, "corrections timed, and updates during which another person's streams are watched")
    starts: int = described(5, "how often heed is started")
    streams: int = described(16, "answers written side by side, each with another adapter")
    rounds: int = described(5, "how often the streams are timed without and with adapters, in turns")
    questions: int = described(8, "questions each stream asks one after the other in a round")
    watched: int = described(3, "overlapping streams of the other person while an update runs")
    readers: int = described(32, "streams open at once while heed's share of the first event is timed")
    chats: int = described(50, "conversations on a chat platform that send a message at once")
    idle_clients: int = described(1100, "clients that hold a connection with half a request")
    slow_clients: int = described(200, "clients that send a byte a second beside them")
    crowd_s: float = described(60.0, "how long they are connected, in seconds")
    completions: int = described(100_000, "answers stored where the dashboards are measured")
    stored: int = described(10_000, "updates stored there")
    people: int = described(1000, "people with an adapter of their own, of whom all are answered at random")
    seed: int = described(0, "which questions and corrections")
    only: tuple[str, ...] = described(DEFAULT_PARTS, "which parts to measure")
    model: str = described("", "the model to start, as HEED_MODEL (empty: as heed is set up)")
    database: str = described("", "an empty PostgreSQL database, postgresql://..., for `cluster`")
    url: str = described("", "a running heed to measure (empty: its own; `start` always starts its own)")
    out: str = described("bench/results", "folder for summary.json")
    check: bool = described(False, "exit with 1 where a figure misses its target")

    def __post_init__(self) -> None:
        """Raise ArgumentError on a value nothing can be measured with."""
        for key, high in (("updates", 500), ("starts", 50), ("rounds", 100), ("questions", 100)):
            _require_range(key, getattr(self, key), high)
        for key in ("streams", "watched"):
            _require_range(key, getattr(self, key), 16)
        _require_range("readers", self.readers, 256, low=2)  # a percentile needs two samples
        for key in ("idle_clients", "slow_clients"):
            _require_range(key, getattr(self, key), 30_000, low=0)
        _require_range("crowd_s", self.crowd_s, 3600)
        _require_range("completions", self.completions, 10_000_000, low=2)
        _require_range("stored", self.stored, self.completions // 2)
        _require_range("people", self.people, 100_000, low=self.streams)
        _require_range("chats", self.chats, 1000, low=2)  # one that waits, and others
        unknown = [part for part in self.only if part not in PARTS]
        if unknown or not self.only:
            raise ArgumentError(f"only wants some of {', '.join(PARTS)}, not {', '.join(unknown) or 'nothing'}")
        if "cluster" in self.only and not self.database:
            raise ArgumentError("cluster wants database=postgresql://..., an empty one")

    @property
    def measured_model(self) -> str:
        """The model that is measured, as HEED_MODEL names it."""
        return self.model or os.environ.get("HEED_MODEL") or provenance.POCKET

    @property
    def settings(self) -> dict[str, str]:
        """The variables of the heed that is started."""
        return {"HEED_MODEL": self.model} if self.model else {}


def _require_range(key: str, value: float, high: int, low: int = 1) -> None:
    if not low <= value <= high:
        raise ArgumentError(f"{key} wants a number from {low} to {high}, not {value}")
