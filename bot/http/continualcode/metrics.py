"""The figures of a lesson under continualcode's names. Pure.

The advantage of a token is log p_teacher - log p_student before the steps, in nats, not clipped (the heat of
`engine.requests.LearnOutcome`). Figures that heed does not measure are left out.
"""

import statistics
from collections.abc import Sequence

from bot.http.continualcode.responses import LessonMetrics
from engine.requests import LearnOutcome
from storage.tables import UpdateRun


def metrics_of(adapter_version: int, measured: LearnOutcome | UpdateRun) -> LessonMetrics:
    """Return step, divergences in nats per token, tokens, and the spread of the corrected answer's advantages."""
    advantages = [float(weight) for _, weight in measured.heat or []]
    return {
        "sdpo_step": adapter_version,
        "sdpo_tokens": len(advantages),
        "sdpo_kl": measured.divergence_before,
        "sdpo_kl_after": measured.divergence_after,
        "loss": measured.divergence_before,
        "optim/steps": measured.steps,
        "time/train_s": measured.duration_ms / 1000,
        **credit(advantages),
    }


def credit(advantages: Sequence[float]) -> LessonMetrics:
    """Return the spread of the advantages; empty for none. Sparsity: the share above twice the median size."""
    if not advantages:
        return {}
    sizes = sorted(map(abs, advantages))
    median = statistics.median(sizes)
    return {
        "credit/adv_mean": statistics.fmean(advantages),
        "credit/adv_abs_mean": statistics.fmean(sizes),
        "credit/adv_std": statistics.pstdev(advantages),
        "credit/adv_abs_p50": median,
        "credit/adv_abs_p90": sizes[min(len(sizes) - 1, round(0.9 * (len(sizes) - 1)))],
        "credit/adv_abs_max": sizes[-1],
        "credit/adv_sparsity": sum(size > 2 * median for size in sizes) / len(sizes),
        "credit/kl_positive_frac": sum(value > 0 for value in advantages) / len(advantages),
    }
