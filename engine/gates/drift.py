"""Drift of a person's adapter from the base model with notes: figures over the last answers, with two limits each.

Pure. Notation: p is the active version as it answers now, q the base model that reads the standing notes (without them
everything a person asked for would count as drift); y_i are the last answers given, x_i the prompts that both have
answered again, H the entropy of the next token.

    drift    | mean_i mean_t log p(y_it) - log q(y_it) |, in nats per token
    entropy  (mean H_p + floor) / (mean H_q + floor)
    length   mean tokens of p's answers to x_i / mean tokens of q's
    ROUGE    self-ROUGE-L of p's answers to different x_i; q's beside it, for a base model may repeat itself, too

The critical limits of drift, entropy and ROUGE are CLaaS's alarms, 100 answers and 20 at least mnemonic's. Invariant: a
figure that was not measured is None and raises no alarm.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from statistics import fmean
from typing import Any, Literal

from engine.config import AuditConfig
from engine.gates.texts import self_rouge_l

Level = Literal["ok", "warn", "critical"]
ENTROPY_FLOOR = 0.05  # nats, as in `engine.gates.candidate`: a ratio of two near-zero entropies says nothing


@dataclass(frozen=True)
class Scored:
    """One past answer, read by both models: means over its tokens, in nats."""

    logprob_now: float
    logprob_base: float
    entropy_now: float
    entropy_base: float


@dataclass(frozen=True)
class Rewritten:
    """One prompt answered again by both models: token ids."""

    now: list[int]
    base: list[int]


@dataclass(frozen=True)
class Audit:
    """The figures of one audit, their level and the reasons for it."""

    num_answers: int
    drift: float | None
    entropy_ratio: float | None
    length_ratio: float | None
    self_rouge: float | None
    self_rouge_base: float | None
    level: Level = "ok"
    reasons: list[str] = field(default_factory=list)

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for storage."""
        return asdict(self)


def audit(scored: Sequence[Scored], rewritten: Sequence[Rewritten], config: AuditConfig) -> Audit:
    """Compute the figures and compare them with their limits. Blocking: ROUGE reads each pair of answers."""
    figures = {
        "drift": abs(fmean([s.logprob_now - s.logprob_base for s in scored])) if scored else None,
        "entropy_ratio": _ratio([s.entropy_now for s in scored], [s.entropy_base for s in scored], floor=ENTROPY_FLOOR),
        "length_ratio": _ratio([len(r.now) for r in rewritten], [len(r.base) for r in rewritten], floor=1.0),
        "self_rouge": self_rouge_l([r.now for r in rewritten]),
        "self_rouge_base": self_rouge_l([r.base for r in rewritten]),
    }
    critical, warn = _beyond(figures, config.critical), _beyond(figures, config.warn)
    level: Level = "critical" if critical else "warn" if warn else "ok"
    return Audit(len(scored), **figures, level=level, reasons=critical or warn)


def _beyond(figures: dict[str, float | None], lines: dict[str, tuple[float, float]]) -> list[str]:
    """Describe the figures that are outside their limits."""
    found = []
    for name, (low, high) in lines.items():
        value = figures[name]
        if value is not None and not low <= value <= high:
            found.append(
                f"{name.replace('_', ' ')} {value:.2f}, {'below' if value < low else 'above'} "
                f"{low if value < low else high:g}"
            )
    return found


def _ratio(now: Sequence[float], base: Sequence[float], *, floor: float) -> float | None:
    return (fmean(now) + floor) / (fmean(base) + floor) if now and base else None
