"""Consolidations, better answers and drift audits: every default once, with its unit and its source."""

import math
from dataclasses import dataclass, field

from engine.config.checks import ConfigError, require, require_range
from engine.config.learning import MAX_STEPS
from engine.config.window import Window


@dataclass(frozen=True)
class ConsolidationConfig:
    """The `[sleep]` settings: when a consolidation is due and what it trains on (ADR 12)."""

    is_nightly: bool = True  # False: on demand only
    window: str = "02:00-06:00"  # local time, HH:MM-HH:MM; may wrap midnight (mnemonic)
    min_new: int = 50  # pieces of new feedback that make one due by itself (mnemonic)
    idle_s: float = 60.0  # seconds without any answer before one begins by itself
    look_every_s: float = 30.0  # how often heed checks if one is due
    calibrates: bool = (
        True  # measure an unknown model by itself in idle time, at any hour; False: `heed calibrate` only
    )
    cooldown_s: float = 24 * 3600.0  # after one that failed or was refused (mnemonic)
    max_failures: int = 3  # in a row, after which none begins until the oldest of them has aged (mnemonic)
    failure_age_s: float = 7 * 24 * 3600.0  # after which a failure counts no more (mnemonic)
    num_lessons: int = 24  # corrections of one consolidation, new and earlier: places to be shared
    new_share: float = 0.7  # of the places for new feedback, the rest for earlier corrections (mnemonic's 70/30)
    max_weak: int = 5  # thumbs down without a reason and dropped answers in one consolidation
    min_gap: float = 0.02  # nats per token that a weak signal must move the teacher, or it trains nothing
    full_gap: float = 0.2  # nats per token from which a weak signal has its whole weight
    weak_weight: float = 0.3  # of a correction's, at most
    max_follow_ups: int = 5  # ordinary next messages in one consolidation, of people who allow it
    follow_up_gap: float = 0.1  # nats per token below which a next message trains nothing: five times a weak signal's
    follow_up_weight: float = 0.15  # of a correction's, at most: half a thumb down's
    min_divergence: float = 0.0005  # nats per token over all samples; a tenth of a lesson's: one of many may be lost
    num_own: int = 6  # recent prompts of the person, answered again
    passes: float = 3.0  # over all samples
    max_steps: int = 400  # optimizer steps at most
    num_gold: int = 8  # approved answers that the candidate writes again before it becomes active
    max_drift: float = 1.0  # nats per token from the base on neutral prompts; above it an adapter is made from zero

    def __post_init__(self) -> None:
        """Refuse a window that cannot be read and shares outside 0 to 1."""
        try:
            Window.parse(self.window)
        except ValueError as error:
            raise ConfigError(f"sleep.window is {self.window!r}: {error}") from None
        for name in ("min_new", "max_failures", "num_lessons"):
            require_range(f"sleep.{name}", getattr(self, name), 1, 10_000)
        for name in ("max_weak", "num_own", "num_gold", "max_follow_ups"):
            require_range(f"sleep.{name}", getattr(self, name), 0, 1000)
        for name in ("idle_s", "cooldown_s", "failure_age_s", "min_gap", "min_divergence", "follow_up_gap"):
            require(0 <= getattr(self, name) < math.inf, f"sleep.{name} must be a number, 0 or above")
        for name in ("new_share", "weak_weight", "follow_up_weight"):
            require_range(f"sleep.{name}", getattr(self, name), 0, 1)
        require_range("sleep.look_every_s", self.look_every_s, 0.05, 3600)
        require(self.max_drift > 0, "sleep.max_drift must be above 0")
        require_range("sleep.passes", self.passes, 0.1, 100)
        require_range("sleep.max_steps", self.max_steps, 1, MAX_STEPS)
        require(self.full_gap > self.min_gap, "sleep.full_gap must be above sleep.min_gap")


@dataclass(frozen=True)
class BetterAnswersConfig:
    """The `[curriculum]` settings: poor answers, written better by a teacher (ADR 14)."""

    is_on: bool = True
    num_graded: int = 50  # newest answers of a person that are looked at
    max_answers: int = 20  # tried in one cycle, the worst first (mnemonic)
    cooldown_s: float = 20 * 3600.0  # between two cycles of a person; less than a day, or every other night would do
    max_failures: int = 3  # tries at one answer of which none was an answer, after which it is left alone
    gold_preserved: float = 0.9  # EPR of an approved answer from which it is gold (mnemonic)
    poor_preserved: float = 0.7  # EPR below which an answer needs improvement (mnemonic)
    min_gain: float = 0.5  # nats per answer; less is no proof that notes are followed (as note.min_gain)
    weight: float = 0.5  # of a correction's: no person has said that the better answer is right
    url: str = ""  # of an OpenAI-compatible endpoint, up to /v1; empty: the base model is the teacher
    model: str = ""  # its name at the endpoint
    api_key: str = field(default="", repr=False)
    timeout_s: float = 30.0  # for one answer of the endpoint
    max_tokens: int = 512  # of one answer of the endpoint
    max_reply_bytes: int = 1 << 20  # of the endpoint's whole reply

    def __post_init__(self) -> None:
        """Refuse an endpoint that cannot be called, and shares outside 0 to 1."""
        is_address = not self.url or self.url.startswith(("http://", "https://"))
        require(is_address, f"curriculum.url is {self.url!r}: begin it with http:// or https://, or leave it out")
        require(not self.url or bool(self.model), "curriculum.url is set and curriculum.model is not: name the model")
        for name in ("num_graded", "max_answers", "max_failures", "max_tokens"):
            require_range(f"curriculum.{name}", getattr(self, name), 1, 10_000)
        for name in ("gold_preserved", "poor_preserved", "weight"):
            require_range(f"curriculum.{name}", getattr(self, name), 0, 1)
        for name in ("cooldown_s", "min_gain"):
            require(0 <= getattr(self, name) < math.inf, f"curriculum.{name} must be a number, 0 or above")
        require_range("curriculum.timeout_s", self.timeout_s, 0.1, 3600)
        require_range("curriculum.max_reply_bytes", self.max_reply_bytes, 1 << 10, 1 << 30)


def _lines(drift: float, entropy: float, length: float, rouge: float) -> dict[str, tuple[float, float]]:
    """Return the lowest and highest value allowed for each figure of `engine.gates.drift`."""
    return {
        "drift": (0.0, drift),
        "entropy_ratio": (entropy, math.inf),
        "length_ratio": (1 / length, length),
        "self_rouge": (0.0, rouge),
    }


@dataclass(frozen=True)
class AuditConfig:
    """The drift audit (`engine.gates.drift`): what it reads, how often, and its limits."""

    num_answers: int = 100  # newest answers of a person (mnemonic)
    min_answers: int = 20  # fewer say nothing (mnemonic)
    num_rewritten: int = 12  # of their prompts, answered again by the active version and by the base model
    every_versions: int = 10  # lessons after which there is one; a consolidation is always followed by one
    warn_drift: float = 1.0  # nats per token: half of CLaaS's alarm
    critical_drift: float = 2.0  # nats per token (alarm of CLaaS)
    warn_entropy: float = 0.8  # of the base model's
    critical_entropy: float = 0.6  # (alarm of CLaaS)
    warn_length: float = 2.0  # times longer or shorter than the base model with the same notes
    critical_length: float = 4.0
    warn_rouge: float = 0.75
    critical_rouge: float = 0.85  # (alarm of CLaaS)

    def __post_init__(self) -> None:
        """Refuse a critical limit that is reached before the warning."""
        for name in ("num_answers", "min_answers", "every_versions"):
            require_range(f"audit.{name}", getattr(self, name), 1, 10_000)
        require_range("audit.num_rewritten", self.num_rewritten, 0, 1000)
        for name in ("drift", "length", "rouge"):
            warn, critical = getattr(self, f"warn_{name}"), getattr(self, f"critical_{name}")
            require(0 < warn <= critical, f"audit.critical_{name} must not be below audit.warn_{name}")
        is_ordered = 0 < self.critical_entropy <= self.warn_entropy
        require(is_ordered, "audit.critical_entropy must not be above audit.warn_entropy")
        require(self.warn_length >= 1, "audit.warn_length must be at least 1")

    @property
    def warn(self) -> dict[str, tuple[float, float]]:
        """The limits beyond which a figure is worth a look."""
        return _lines(self.warn_drift, self.warn_entropy, self.warn_length, self.warn_rouge)

    @property
    def critical(self) -> dict[str, tuple[float, float]]:
        """The limits beyond which an adapter should be rebuilt."""
        return _lines(self.critical_drift, self.critical_entropy, self.critical_length, self.critical_rouge)
