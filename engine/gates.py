"""Whether a candidate becomes active: small pure functions, each with its equation, and their verdict.

Invariant: a gate only reads numbers that were measured; it never trains, loads or saves anything.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from engine.config import GateConfig


@dataclass(frozen=True)
class Measurements:
    """What was measured on a candidate; None where it was not."""

    is_finite: bool
    update_norm: float  # Frobenius norm of the change of all LoRA values
    steps: int
    divergence_before: float | None = None  # nats per token, teacher against student
    divergence_after: float | None = None
    anchor_divergence: float | None = None  # nats per token, base against candidate on neutral prompts


@dataclass(frozen=True)
class Verdict:
    """Accepted or not, with one line per gate."""

    is_accepted: bool
    reason: str = ""
    checks: Mapping[str, bool] = field(default_factory=dict)

    def to_dict(self) -> dict[str, object]:
        """Plain values for storage and answers."""
        return {"accepted": self.is_accepted, "reason": self.reason, "checks": dict(self.checks)}


def is_finite(measured: Measurements) -> bool:
    """Every weight, loss and gradient was a number, and so is everything measured."""
    divergences = (measured.divergence_before, measured.divergence_after, measured.anchor_divergence)
    figures = [measured.update_norm, *(d for d in divergences if d is not None)]
    return measured.is_finite and all(map(math.isfinite, figures))


def is_bounded(measured: Measurements, config: GateConfig) -> bool:
    """||W_candidate - W_parent||_F <= max_update_norm."""
    return measured.update_norm <= config.max_update_norm


def has_learned(measured: Measurements, config: GateConfig) -> bool:
    """D_before - D_after > min_divergence_drop, where D is the mean divergence of teacher and student."""
    if measured.divergence_before is None or measured.divergence_after is None:
        return False
    return measured.divergence_before - measured.divergence_after > config.min_divergence_drop


def keeps_neutral(measured: Measurements, config: GateConfig) -> bool:
    """KL(base || candidate) on neutral prompts <= max_anchor_divergence; passes where nothing was measured."""
    return measured.anchor_divergence is None or measured.anchor_divergence <= config.max_anchor_divergence


_REASONS = {
    "finite": "the lesson broke the numbers",
    "bounded": "the lesson would have changed too much at once",
    "learned": "the lesson did not bring the answers closer to what you asked",
    "neutral": "the lesson would have changed things that have nothing to do with it",
}


def judge(measured: Measurements, config: GateConfig) -> Verdict:
    """All gates, the first failing one named."""
    checks = {
        "finite": is_finite(measured),
        "bounded": is_bounded(measured, config),
        "learned": has_learned(measured, config),
        "neutral": keeps_neutral(measured, config),
    }
    failed = next((name for name, is_passed in checks.items() if not is_passed), None)
    return Verdict(failed is None, _REASONS[failed] if failed else "", checks)
