"""How far the running lesson is: its phase, and its share of the time that a lesson takes here.

Owns the estimate. A phase counts as much as it took in the last lesson of this process, before the first one as much
as in `EXPECTED_MS`; within a phase the share comes closer to the phase's end and never reaches it, except while
training, where the trainer counts its steps. Invariants: one lesson runs at a time; its share never falls.
"""

import math
import time
from collections.abc import Callable, Mapping

from engine.requests import LessonProgress

TRAIN, REJECTED = "train", "rejected"
EXPECTED_MS = {  # in the order of a lesson: a small model on two CPU cores
    "reading": 1500.0,
    "rollouts": 4000.0,
    "teacher rollouts": 6000.0,
    "facts": 10.0,
    TRAIN: 15000.0,
    "publish": 500.0,
    "activate": 50.0,
}
ALMOST = 0.99  # a lesson that still runs has not ended


class ProgressEstimate:
    """The progress of the lesson that runs. A phase begins where `lap` ends the one before."""

    def __init__(self, trained_share: Callable[[], float], clock: Callable[[], float] = time.monotonic) -> None:
        """`trained_share`: the share of the trainer's steps that are done."""
        self._trained_share = trained_share
        self._clock = clock
        self._expected_ms: dict[str, float] = dict(EXPECTED_MS)
        self._feedback_id = ""
        self._phase = ""
        self._phase_began_s = 0.0
        self._share = 0.0

    def begin(self, feedback_id: str) -> None:
        """Note that a lesson, or another attempt at it, begins."""
        self._feedback_id = feedback_id
        self._share = 0.0
        self._enter(next(iter(self._expected_ms)))

    def lap(self, phase: str) -> None:
        """Note that a phase has ended: a refused attempt is trained once more, an unknown phase changes nothing."""
        phases = list(self._expected_ms)
        if phase == REJECTED:
            self._enter(TRAIN)
        elif phase in phases:
            self._enter(phases[min(phases.index(phase) + 1, len(phases) - 1)])

    def end(self, phases_ms: Mapping[str, float]) -> None:
        """Note that a version was learned: its phases are what the next lesson is expected to take."""
        if TRAIN in phases_ms and REJECTED not in phases_ms:
            self._expected_ms = {phase: max(taken_ms, 1.0) for phase, taken_ms in phases_ms.items()}

    def of(self, feedback_id: str, duration_s: float) -> LessonProgress:
        """Return how far a running lesson is; one that has not begun to do anything is at the start."""
        if feedback_id != self._feedback_id:
            return LessonProgress("running", next(iter(self._expected_ms)), duration_s=duration_s)
        self._share = max(self._share, min(self._estimate(), ALMOST))
        return LessonProgress("running", self._phase, self._share, duration_s)

    def _enter(self, phase: str) -> None:
        self._phase, self._phase_began_s = phase, self._clock()

    def _estimate(self) -> float:
        phases = list(self._expected_ms)
        ended = phases[: phases.index(self._phase)]
        done_ms = sum(self._expected_ms[phase] for phase in ended) + self._within() * self._expected_ms[self._phase]
        return done_ms / sum(self._expected_ms.values())

    def _within(self) -> float:
        """Return the share of the present phase that is probably done."""
        if self._phase == TRAIN:
            return self._trained_share()
        elapsed_ms = (self._clock() - self._phase_began_s) * 1e3
        return 1.0 - math.exp(-elapsed_ms / self._expected_ms[self._phase])
