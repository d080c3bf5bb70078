"""bot.http.continualcode.metrics: the figures of a lesson under continualcode's names."""

import pytest

from bot.http.continualcode.metrics import credit, metrics_of
from engine.requests import LearnOutcome


def test_advantages_are_summed_up() -> None:
    """Advantages are summarised by mean, spread and sparsity."""
    found = credit([0.1, -0.1, 0.1, 2.0, -1.0])
    assert found["credit/adv_mean"] == pytest.approx(0.22)
    assert found["credit/adv_abs_mean"] == pytest.approx(0.66)
    assert (found["credit/adv_abs_p50"], found["credit/adv_abs_max"]) == (0.1, 2.0)
    assert found["credit/adv_sparsity"] == pytest.approx(0.4)
    assert found["credit/kl_positive_frac"] == pytest.approx(0.6)


def test_a_lesson_without_heat_has_its_other_figures() -> None:
    """A lesson without heat has no credit figures."""
    outcome = LearnOutcome("fb-1", "learned", 3, steps=10, divergence_before=1.5, divergence_after=0.1, duration_ms=500)
    found = metrics_of(3, outcome)
    assert (found["sdpo_step"], found["sdpo_kl"], found["sdpo_kl_after"]) == (3, 1.5, 0.1)
    assert (found["sdpo_tokens"], found["time/train_s"]) == (0, 0.5)
    assert not any(name.startswith("credit/") for name in found)
