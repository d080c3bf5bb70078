"""What a candidate and the version before it say at the positions an update has in hand, for `engine.gates.candidate`.

Owns a few numbers per response position, taken from distributions that the update computes anyway: before the first
step and after the last one, in the same order. Notation as in `engine.gates.candidate`. Invariant: nothing kept here
carries a gradient or a distribution over the vocabulary.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor

from engine.gates.texts import self_rouge_l
from engine.sample import Sample
from engine.training import sdpo

MARGIN_LIMIT = 3.0  # nats: 20 to 1; a token that is surer than that is not better held
ENTROPY_FLOOR = 0.05  # nats per token: where the teacher is as sure as that there is no variety to lose
ROUGE_ANSWERS = 4  # compared with each other, pair by pair
ROUGE_TOKENS = 64  # of each


@dataclass
class _Look:
    """What was read in one pass; every list has one tensor per chunk, axis [N] each."""

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
        """`samples`: those of the update, in its numbering."""
        self._samples = samples
        self._before = _Look()
        self._after = _Look()

    def before(self, owners_N: Tensor, tokens_N: Tensor, student_NV: Tensor, teacher_NV: Tensor) -> None:
        """Some positions under the version before (log-probabilities), and under the teacher."""
        self._before.divergence.append(sdpo.forward_kl(student_NV, teacher_NV))
        preferred_N = teacher_NV.argmax(-1)
        self._before.owners.append(owners_N)
        self._before.tokens.append(tokens_N)
        self._before.preferred.append(preferred_N)
        _student(self._before, student_NV, tokens_N, preferred_N)

    def after(self, tokens_N: Tensor, student_NV: Tensor, teacher_NV: Tensor) -> None:
        """The same positions in the same order under the candidate."""
        seen = sum(map(len, self._after.choice))
        preferred_N = torch.cat(self._before.preferred)[seen : seen + len(tokens_N)]
        _student(self._after, student_NV, tokens_N, preferred_N)
        self._after.divergence.append(sdpo.forward_kl(student_NV, teacher_NV))
        self._after.entropy.append(_entropy(student_NV))
        self._after.teacher_entropy.append(_entropy(teacher_NV))
        self._after.teacher_logp_token.append(sdpo.token_logprobs(teacher_NV, tokens_N))

    def figures(self) -> dict[str, float | None]:
        """The measured fields of `engine.gates.candidate.Measurements`; empty where the candidate was not looked at."""
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


def _student(look: _Look, student_NV: Tensor, tokens_N: Tensor, preferred_N: Tensor) -> None:
    look.choice.append(student_NV.argmax(-1))
    look.logp_token.append(sdpo.token_logprobs(student_NV, tokens_N))
    look.logp_preferred.append(sdpo.token_logprobs(student_NV, preferred_N))


def _entropy(logprobs_NV: Tensor) -> Tensor:
    """H = -sum_v p log p in nats, axis [N]."""
    return torch.special.entr(logprobs_NV.exp()).sum(-1)


def _joined(look: _Look) -> dict[str, Tensor]:
    return {name: torch.cat(parts) for name, parts in vars(look).items() if parts}


class _Figures:
    """The equations, over all positions."""

    def __init__(self, samples: Sequence[Sample], before: dict[str, Tensor], after: dict[str, Tensor]) -> None:
        self._samples, self._b, self._a = samples, before, after
        self._differs = before["preferred"] != before["tokens"]  # t* != y

    def margins(self) -> tuple[float | None, float | None]:
        """mean_t [log p(t*) - log p(y)] over the corrected answers where t* != y, before and after."""
        at = self._of("correction") & self._differs
        if not bool(at.any()):
            return None, None
        before, after = (float((look["logp_preferred"] - look["logp_token"])[at].mean()) for look in (self._b, self._a))
        return before, after

    def earlier_drop(self) -> float | None:
        """The worst fall of such a margin, each token's cut at +-MARGIN_LIMIT, among the earlier corrections."""
        before, after = (
            (look["logp_preferred"] - look["logp_token"]).clamp(-MARGIN_LIMIT, MARGIN_LIMIT)
            for look in (self._b, self._a)
        )
        return self._worst("earlier", self._differs, before - after)

    def gold_drop(self) -> float | None:
        """The worst mean fall of log p(y) among the gold answers, where t* = y."""
        return self._worst("gold", ~self._differs, self._b["logp_token"] - self._a["logp_token"])

    def unasked(self) -> tuple[float, float]:
        """mean_t max(0, KL(q || p1) - KL(q || p0)), over all trained answers and in the worst of them."""
        rise_N = (self._a["divergence"] - self._b["divergence"]).clamp(min=0)
        trained = [self._b["owners"] == i for i, s in enumerate(self._samples) if not s.is_held_out]
        everywhere = torch.stack(trained).any(0)
        return float(rise_N[everywhere].mean()), max(float(rise_N[at].mean()) for at in trained)

    def entropy_ratio(self) -> float | None:
        """(mean_t H(p1) + h) / (mean_t H(q) + h) over what was taught, h = ENTROPY_FLOOR."""
        at = self._of("correction", "counterfactual")
        if not bool(at.any()):
            return None
        own, teacher = (float(self._a[name][at].mean()) for name in ("entropy", "teacher_entropy"))
        return (own + ENTROPY_FLOOR) / (teacher + ENTROPY_FLOOR)

    def self_rouge(self) -> float | None:
        """How alike the candidate's likeliest tokens are along the base's answers to different neutral prompts."""
        owners = [i for i, s in enumerate(self._samples) if s.is_anchor][:ROUGE_ANSWERS]
        return self_rouge_l([self._a["choice"][self._b["owners"] == i][:ROUGE_TOKENS].tolist() for i in owners])

    def drift(self) -> float | None:
        """|mean_t log p1(y) - mean_t log base(y)| on neutral prompts."""
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
