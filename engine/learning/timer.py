"""Timing of the phases of an update."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field


@dataclass(kw_only=True)
class PhaseTimer:
    """Measures from its creation on how long each phase takes."""

    phases_ms: dict[str, float] = field(default_factory=dict)
    started_s: float = field(default_factory=time.perf_counter)
    on_lap: Callable[[str], None] | None = None  # told of each phase that has ended

    def lap(self, phase: str) -> None:
        """Add the time since the last lap to a phase."""
        since_last_ms = self.duration_ms - sum(self.phases_ms.values())
        self.phases_ms[phase] = self.phases_ms.get(phase, 0.0) + since_last_ms
        if self.on_lap is not None:
            self.on_lap(phase)

    @property
    def duration_ms(self) -> float:
        """Milliseconds since the timer was created."""
        return (time.perf_counter() - self.started_s) * 1e3
