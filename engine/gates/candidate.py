"""The gates that accept or refuse a candidate: small pure functions, each with its equation, and their verdict.

Notation: W are LoRA values; p0 the parent, p1 the candidate, both without notes in the prompt; q the teacher, who sees
the notes and the new feedback; y the old answer's tokens; t* the token the teacher likes best at a position. What is
read here was measured by `engine.training.measuring` at positions the update has in hand. Invariant: a gate only reads
numbers; it never trains, loads or saves anything. A figure that was not measured (None) refuses nothing but a lesson
that is not known to have been learned. The reasons are sentences that people read.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields

from engine.config import GateConfig

DIVERGENCE_FLOOR = 0.02  # nats per token
MARGIN_LIMIT = 3.0  # nats: 20 to 1; being surer of a token than that holds it no better


@dataclass(frozen=True)
class Measurements:
    """The figures of one candidate; None for a figure that was not measured."""

    is_finite: bool
    update_norm: float  # Frobenius norm of the change of all LoRA values
    steps: int
    value_change: float = 0.0  # root mean square of the same
    divergence_before: float | None = None  # nats per token, teacher against student
    divergence_after: float | None = None
    anchor_divergence: float | None = None  # nats per token, base against candidate on neutral prompts
    margin_before: float | None = None  # nats per token that the lesson is about, on the corrected answer
    margin_after: float | None = None
    earlier_drop: float | None = None  # nats per token, the worst of the earlier corrections looked at
    gold_drop: float | None = None  # nats per token, the worst of the gold answers looked at
    unasked: float | None = None  # nats per token that the candidate went away from the teacher
    unasked_worst: float | None = None  # the same in the answer with the most of it
    entropy_ratio: float | None = None  # candidate against teacher
    self_rouge: float | None = None  # ROUGE-L F1 between the candidate's answers to different prompts
    drift: float | None = None  # nats per token on the base model's answers to neutral prompts


@dataclass(frozen=True)
class Verdict:
    """Acceptance or refusal, with the result of each gate and the figures behind it."""

    is_accepted: bool
    reason: str = ""
    checks: Mapping[str, bool] = field(default_factory=dict)
    figures: Mapping[str, float] = field(default_factory=dict)

    def to_dict(self) -> dict[str, object]:
        """Return plain values for storage and answers."""
        return {
            "accepted": self.is_accepted,
            "reason": self.reason,
            "checks": dict(self.checks),
            "figures": {k: v if math.isfinite(v) else None for k, v in self.figures.items()},
        }

    def and_checks(
        self, checks: Mapping[str, bool], reasons: Mapping[str, str], figures: Mapping[str, float | None]
    ) -> "Verdict":
        """Return this verdict with further checks. The reason stays that of the first check that failed.

        `reasons` has a text for every name in `checks`; a figure that is None is left out.
        """
        failed = next((name for name, is_passed in checks.items() if not is_passed), None)
        return Verdict(
            self.is_accepted and failed is None,
            self.reason or (reasons[failed] if failed else ""),
            {**self.checks, **checks},
            {**self.figures, **{name: value for name, value in figures.items() if value is not None}},
        )


def is_finite(m: Measurements, _config: GateConfig) -> bool:
    """Return True if every weight, loss, gradient and measured figure is a number."""
    return m.is_finite and all(map(math.isfinite, _figures(m).values()))


def is_bounded(m: Measurements, config: GateConfig) -> bool:
    """Check ||W1 - W0||_F / sqrt(n) <= max_value_change for n LoRA values: a bound for adapters of every size.

    An operator's max_update_norm takes its place: ||W1 - W0||_F <= max_update_norm.
    """
    if config.max_update_norm is not None:
        return m.update_norm <= config.max_update_norm
    return m.value_change <= config.max_value_change


def has_learned(m: Measurements, config: GateConfig) -> bool:
    """Check D1 < max(max_divergence_left D0, min(D0, f)), where D is the mean divergence of teacher and student.

    A candidate that was taught something else comes nearer to the teacher only by chance. The floor f is for lessons
    that nearly hold already: any share of such a small divergence may be left. If rounding puts D0 below zero the
    condition is D1 < D0.
    """
    if m.divergence_before is None or m.divergence_after is None:
        return False
    limit = min(m.divergence_before, DIVERGENCE_FLOOR)
    if m.divergence_before > 0:
        limit = max(config.max_divergence_left * m.divergence_before, limit)
    return m.divergence_after < limit


def complies_more(m: Measurements, config: GateConfig) -> bool:
    """Check M1 - M0 > min_margin_gain, with M = mean_t [log p(t*) - log p(y)] over the corrected answer at t* != y.

    The log-probability margin of CLaaS's harness, with the teacher's tokens for its positive examples.
    """
    if m.margin_before is None or m.margin_after is None:
        return True
    return m.margin_after - m.margin_before > config.min_margin_gain


def keeps_neutral(m: Measurements, config: GateConfig) -> bool:
    """Check mean_t KL(base || p1) on neutral prompts <= max_anchor_divergence."""
    return m.anchor_divergence is None or m.anchor_divergence <= config.max_anchor_divergence


def holds_earlier(m: Measurements, config: GateConfig) -> bool:
    """Check max over earlier corrections of (M0 - M1) <= max_earlier_drop, over the tokens with t* != y.

    Each token's margin is cut at +-3 nats: a token given up altogether costs up to 6, being less sure of it nothing.
    If a newer lesson reverses an older one the teacher likes y again, and positions with t* = y are not counted.
    """
    return m.earlier_drop is None or m.earlier_drop <= config.max_earlier_drop


def keeps_gold(m: Measurements, config: GateConfig) -> bool:
    """Check max over approved answers of mean_t [log p0(y) - log p1(y)] at y = t* <= max_gold_drop.

    At a position where the teacher with the new feedback no longer says y, the answer is meant to change.
    """
    return m.gold_drop is None or m.gold_drop <= config.max_gold_drop


def changes_what_was_asked(m: Measurements, config: GateConfig) -> bool:
    """Check U = mean_t max(0, KL(q || p1) - KL(q || p0)) <= max_unasked, and U of each answer <= max_unasked_worst.

    A step towards the teacher or no step at all costs nothing, so this judges neither how much was learned nor how
    fast. A change that was not asked for costs: of a fact that the version before and the teacher agree on, of a lesson
    that the teacher still holds, or towards an instruction that the person never gave.
    """
    is_wide = m.unasked is not None and m.unasked > config.max_unasked
    is_local = m.unasked_worst is not None and m.unasked_worst > config.max_unasked_worst
    return not (is_wide or is_local)


def keeps_entropy(m: Measurements, config: GateConfig) -> bool:
    """Check (mean_t H(p1) + h) / (mean_t H(q) + h) >= min_entropy_ratio (CLaaS: 0.6, there against the base model).

    Against the teacher, because a style that was asked for lowers the entropy legitimately.
    """
    return m.entropy_ratio is None or m.entropy_ratio >= config.min_entropy_ratio


def keeps_variety(m: Measurements, config: GateConfig) -> bool:
    """Check mean pairwise ROUGE-L F1 of answers to different prompts <= max_self_rouge (CLaaS: 0.85)."""
    return m.self_rouge is None or m.self_rouge <= config.max_self_rouge


def stays_near(m: Measurements, config: GateConfig) -> bool:
    """Check |mean_t log p1(y) - mean_t log base(y)| on the base model's own answers <= max_drift (CLaaS: 2 nats)."""
    return m.drift is None or m.drift <= config.max_drift


Gate = Callable[[Measurements, GateConfig], bool]
GATES: Mapping[str, tuple[Gate, str]] = {
    "finite": (is_finite, "The training broke down: some values were no longer numbers."),
    "bounded": (is_bounded, "The lesson would have changed too much at once."),
    "learned": (has_learned, "The lesson did not bring the answers close enough to what you asked for."),
    "complies": (complies_more, "The answer you corrected would not have come closer to what you asked for."),
    "neutral": (keeps_neutral, "The lesson would have changed answers that have nothing to do with it."),
    "earlier": (holds_earlier, "The lesson would have undone something you taught before."),
    "gold": (keeps_gold, "The lesson would have spoiled an answer you liked."),
    "asked": (changes_what_was_asked, "The lesson would have changed more than you asked for."),
    "entropy": (keeps_entropy, "The answers would all have become alike."),
    "variety": (keeps_variety, "The answers would all have become alike."),
    "drift": (stays_near, "The lesson would have led too far away from the base model."),
}


def judge(measured: Measurements, config: GateConfig) -> Verdict:
    """Apply all gates. The reason is that of the first one that fails."""
    checks = {name: gate(measured, config) for name, (gate, _) in GATES.items()}
    failed = next((name for name, is_passed in checks.items() if not is_passed), None)
    return Verdict(failed is None, GATES[failed][1] if failed else "", checks, _figures(measured))


def _figures(m: Measurements) -> dict[str, float]:
    """Return the measured figures by name."""
    values = {f.name: getattr(m, f.name) for f in fields(m) if f.name not in ("is_finite", "steps")}
    return {name: value for name, value in values.items() if value is not None}
