"""Gaps between the pieces of streamed answers, seen through windows of time. Pure.

An answer is the list of times at which its pieces arrived. Only gaps within an answer count: the pause between an
answer and the next question is the person's own.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise


@dataclass(frozen=True)
class TimeWindow:
    """A stretch of time, in seconds of `time.perf_counter`."""

    start_s: float
    end_s: float

    @property
    def duration_s(self) -> float:
        """How long it is."""
        return self.end_s - self.start_s


def gaps_s(answers: Iterable[Sequence[float]], window: TimeWindow) -> list[float]:
    """Return all gaps that overlap the window, in seconds."""
    return [
        after - before
        for times in answers
        for before, after in pairwise(times)
        if after > window.start_s and before < window.end_s
    ]
