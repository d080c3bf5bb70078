"""From the figures of trials to settings: the learning rate, and the bounds of the gates. Pure.

A rate is worth what it closes on answers that it was not trained on, less what it costs on neutral ones. A bound stands
a stated factor beyond the worst good lesson: what closes nothing leaves all of the divergence, so the bound on what is
left stands half-way between; the other figures have no upper end, and a good lesson's varies by about a factor of two.
"""

from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import Any

from engine.calibration.trials import Trial

NEUTRAL_PRICE = 3.0  # share of the divergence closed that one nat per token on neutral answers is worth
LEAST_MOVE = 0.02  # nats per token: a wish that moves the teacher less on other prompts cannot be followed
_FACTORS = {  # of the bound, over the worst good lesson; and the least bound
    "max_value_change": ("value_change", 3.0, 0.002),
    "max_anchor_divergence": ("anchor", 4.0, 0.1),
    "max_unasked": ("unasked", 4.0, 0.05),
    "max_unasked_worst": ("unasked_worst", 3.0, 0.2),
}


def worth(trials: Sequence[Trial]) -> float:
    """Return what lessons at one rate are worth: higher is better.

    An answer's first tokens decide how it goes on; to go beyond the teacher in them is worth no more than to reach it.
    """
    return fmean((trial.closed + min(1.0, trial.opened)) / 2 - NEUTRAL_PRICE * trial.neutral for trial in trials)


def told(trial: Trial) -> str:
    """Return the figures of a lesson as one reads them."""
    return f"{trial.closed:.0%} learned, {trial.opened:.0%} of openings, neutral {trial.neutral:.3f} nats"


def best_rate(tried: Mapping[float, Sequence[Trial]]) -> float:
    """Return the rate whose lessons are worth most; of two as good as each other the lower."""
    return max(sorted(tried), key=lambda rate: round(worth(tried[rate]), 3))


def beyond(tried: Mapping[float, Sequence[Trial]]) -> float | None:
    """Return the rate to try next, half or twice the best one if that is the lowest or the highest; else None."""
    best, rates = best_rate(tried), sorted(tried)
    if best == rates[0]:
        return best / 2
    return best * 2 if best == rates[-1] else None


def bounds(good: Sequence[Trial]) -> dict[str, float]:
    """Return the gates' bounds from good lessons. Wishes that the model cannot follow say nothing and are left out."""
    counted = [trial for trial in good if trial.before >= LEAST_MOVE and trial.closed > 0] or list(good)
    found = {
        name: max(least, factor * max(getattr(trial, figure) for trial in counted))
        for name, (figure, factor, least) in _FACTORS.items()
    }
    worst_left = min(1.0, max(trial.left for trial in counted))
    return {name: float(f"{value:.3g}") for name, value in found.items()} | {
        "max_divergence_left": float(f"{(worst_left + 1) / 2:.3g}")
    }


def summary(tried: Mapping[float, Sequence[Trial]], good: Sequence[Trial], placebo: Sequence[Trial]) -> dict[str, Any]:
    """Return the figures as they are kept and shown."""
    return {
        "rates": {f"{rate:g}": round(worth(trials), 3) for rate, trials in tried.items()},
        "closed": {trial.feedback: round(trial.closed, 3) for trial in good},
        "opened": {trial.feedback: round(trial.opened, 3) for trial in good},
        "neutral": round(fmean(trial.neutral for trial in good), 4),
        "neutral_placebo": round(fmean(trial.neutral for trial in placebo), 4),
        "left": [round(trial.left, 3) for trial in good],
        "left_placebo": [round(trial.left, 3) for trial in placebo],
    }
