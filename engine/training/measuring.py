"""Metrics of a candidate and of the version before it, for the gates (`engine.gates.candidate`).

Owns a few numbers per response position of an update, taken from distributions that it computes anyway: before the
first step and after the last one, in the same order. Notation as in `engine.gates.candidate`. Invariant: nothing kept
here carries a gradient or a distribution over the vocabulary.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor

from engine.gates.candidate import MARGIN_LIMIT
from engine.gates.texts import self_rouge_l
from engine.sample import Sample
from engine.training import sdpo

ENTROPY_FLOOR = 0.05  # nats per token: if the teacher is that sure there is no variety to lose
ROUGE_ANSWERS = 4  # compared with each other, pair by pair
ROUGE_TOKENS = 64  # of each


@dataclass
class Measured:
    """The report of one update, besides its weights."""

    steps: int = 0
    divergence_before: float | None = None  # nats per token, correction and counterfactual samples
    divergence_after: float | None = None
    anchor_divergence_after: float | None = None  # nats per token, anchor samples
    heat: list[list[float]] = field(default_factory=list)  # [token id, log p_teacher - log p_student]
    importance: dict[str, float] = field(default_factory=dict)
    phases_ms: dict[str, float] = field(default_factory=dict)
    losses: list[float] = field(default_factory=list)
    agreement: list[float] = field(default_factory=list)  # per step: nats at the stop_quantile of taught positions
    figures: dict[str, float | None] = field(default_factory=dict)  # named as in `engine.gates.candidate.Measurements`
    is_finite: bool = True


@dataclass
class _Pass:
    """The values of one pass; every list has one tensor per chunk, axis [N] each."""

    owners: list[Tensor] = field(default_factory=list)
    tokens: list[Tensor] = field(default_factory=list)  # y
    preferred: list[Tensor] = field(default_factory=list)  # t*
    choice: list[Tensor] = field(default_factory=list)  # the student's likeliest token
    logp_preferred: list[Tensor] = field(default_factory=list)
    logp_token: list[Tensor] = field(default_factory=list)
    teacher_logp_token: list[Tensor] = field(default_factory=list)
    divergence: list[Tensor] = field(default_factory=list)  # KL(q || p)
    entropy: list[Tensor] = field(default_factory=list)
    teacher_entropy: list[Tensor] = field(default_factory=list)


class PositionMetrics:
    """One update's figures, position by position."""

    def __init__(self, samples: Sequence[Sample]) -> None:
        """Prepare for the samples of an update, in its numbering."""
        self._samples = samples
        self._before = _Pass()
        self._after = _Pass()

    def before(self, owners_N: Tensor, tokens_N: Tensor, student_NV: Tensor, teacher_NV: Tensor, kl_N: Tensor) -> None:
        """Add positions of the version before and of the teacher, as log-probabilities, and KL(q || p) of each."""
        self._before.divergence.append(kl_N)
        preferred_N = teacher_NV.argmax(-1)
        self._before.owners.append(owners_N)
        self._before.tokens.append(tokens_N)
        self._before.preferred.append(preferred_N)
        _student(self._before, student_NV, tokens_N, preferred_N)

    def after(self, tokens_N: Tensor, student_NV: Tensor, teacher_NV: Tensor, kl_N: Tensor) -> None:
        """Add the same positions of the candidate, in the same order."""
        seen = sum(map(len, self._after.choice))
        preferred_N = torch.cat(self._before.preferred)[seen : seen + len(tokens_N)]
        _student(self._after, student_NV, tokens_N, preferred_N)
        self._after.divergence.append(kl_N)
        self._after.entropy.append(sdpo.entropy(student_NV))
        self._after.teacher_entropy.append(sdpo.entropy(teacher_NV))
        self._after.teacher_logp_token.append(sdpo.token_logprobs(teacher_NV, tokens_N))

    def forget_after(self) -> None:
        """Forget the candidate, so that another one is measured against the same version before."""
        self._after = _Pass()

    def figures(self) -> dict[str, float | None]:
        """Return the measured fields of `engine.gates.candidate.Measurements`; empty without a candidate."""
        if not self._after.choice:
            return {}
        found = _Figures(self._samples, _joined(self._before), _joined(self._after))
        margin_before, margin_after = found.margins()
        unasked, unasked_worst = found.unasked()
        return {
            "margin_before": margin_before,
            "margin_after": margin_after,
            "earlier_drop": found.earlier_drop(),
            "gold_drop": found.gold_drop(),
            "unasked": unasked,
            "unasked_worst": unasked_worst,
            "entropy_ratio": found.entropy_ratio(),
            "self_rouge": found.self_rouge(),
            "drift": found.drift(),
        }


def _student(seen: _Pass, student_NV: Tensor, tokens_N: Tensor, preferred_N: Tensor) -> None:
    seen.choice.append(student_NV.argmax(-1))
    seen.logp_token.append(sdpo.token_logprobs(student_NV, tokens_N))
    seen.logp_preferred.append(sdpo.token_logprobs(student_NV, preferred_N))


def _joined(seen: _Pass) -> dict[str, Tensor]:
    return {name: torch.cat(parts) for name, parts in vars(seen).items() if parts}


class _Figures:
    """The equations, over all positions."""

    def __init__(self, samples: Sequence[Sample], before: dict[str, Tensor], after: dict[str, Tensor]) -> None:
        self._samples, self._b, self._a = samples, before, after
        self._differs = before["preferred"] != before["tokens"]  # t* != y

    def margins(self) -> tuple[float | None, float | None]:
        """Return mean_t [log p(t*) - log p(y)] over the corrected answers at t* != y, before and after."""
        at = self._of("correction") & self._differs
        if not bool(at.any()):
            return None, None
        before, after = (float((seen["logp_preferred"] - seen["logp_token"])[at].mean()) for seen in (self._b, self._a))
        return before, after

    def earlier_drop(self) -> float | None:
        """Return the worst fall of such a margin among the earlier corrections, each token's cut at +-MARGIN_LIMIT."""
        before, after = (
            (seen["logp_preferred"] - seen["logp_token"]).clamp(-MARGIN_LIMIT, MARGIN_LIMIT)
            for seen in (self._b, self._a)
        )
        return self._worst("earlier", self._differs, before - after)

    def gold_drop(self) -> float | None:
        """Return the worst mean fall of log p(y) among the gold answers, at t* = y."""
        return self._worst("gold", ~self._differs, self._b["logp_token"] - self._a["logp_token"])

    def unasked(self) -> tuple[float, float]:
        """Return mean_t max(0, KL(q || p1) - KL(q || p0)) over all whole trained answers, and in the worst of them."""
        rise_N = (self._a["divergence"] - self._b["divergence"]).clamp(min=0)
        whole = [i for i, s in enumerate(self._samples) if not s.is_held_out and s.kind != "opening"]
        trained = [self._b["owners"] == i for i in whole]
        everywhere = torch.stack(trained).any(0)
        return float(rise_N[everywhere].mean()), max(float(rise_N[at].mean()) for at in trained)

    def entropy_ratio(self) -> float | None:
        """Return (mean_t H(p1) + h) / (mean_t H(q) + h) over the taught samples, h = ENTROPY_FLOOR."""
        at = self._of("correction", "counterfactual")
        if not bool(at.any()):
            return None
        own, teacher = (float(self._a[name][at].mean()) for name in ("entropy", "teacher_entropy"))
        return (own + ENTROPY_FLOOR) / (teacher + ENTROPY_FLOOR)

    def self_rouge(self) -> float | None:
        """Return the self-ROUGE-L of the candidate's likeliest tokens along the base's answers to neutral prompts."""
        owners = [i for i, s in enumerate(self._samples) if s.is_anchor][:ROUGE_ANSWERS]
        return self_rouge_l([self._a["choice"][self._b["owners"] == i][:ROUGE_TOKENS].tolist() for i in owners])

    def drift(self) -> float | None:
        """Return |mean_t log p1(y) - mean_t log base(y)| on neutral prompts."""
        at = self._of("anchor")
        if not bool(at.any()):
            return None
        return abs(float((self._a["logp_token"] - self._a["teacher_logp_token"])[at].mean()))

    def _of(self, *kinds: str) -> Tensor:
        owners = [i for i, s in enumerate(self._samples) if s.kind in kinds]
        return torch.isin(self._b["owners"], torch.tensor(owners, dtype=torch.long, device=self._b["owners"].device))

    def _worst(self, kind: str, at: Tensor, fall_N: Tensor) -> float | None:
        places = [at & (self._b["owners"] == i) for i, s in enumerate(self._samples) if s.kind == kind]
        falls = [float(fall_N[place].mean()) for place in places if bool(place.any())]
        return max(falls) if falls else None
