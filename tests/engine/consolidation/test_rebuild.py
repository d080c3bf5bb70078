"""Tests of the comparison of an old version and a new one; the measuring itself is in test_consolidator."""

from pathlib import Path

import pytest

from engine.config import EngineConfig
from engine.consolidation.rebuild import likelihood_drop, margin_drop, with_comparison, worst
from engine.gates.candidate import Measurements, Verdict
from engine.sample import Score

CONFIG = EngineConfig(model="m", data_dir=Path("data"))
GOOD = Verdict(True, "", {"finite": True}, {"update_norm": 1.0})


def score(student: list[float], preferred: list[float], is_preferred: list[bool]) -> Score:
    """Return the score of one answer by one version."""
    return Score(student, [], 0.0, 0.0, 0.0, preferred, is_preferred)


def test_a_margin_counts_where_the_teacher_would_say_something_else() -> None:
    """Each token's margin is cut at three nats; a fall is above 0."""
    old = score([-9.0, -1.0, -0.1], [-0.1, -0.1, -0.1], [False, False, True])
    new = score([-0.5, -1.0, -9.0], [-1.0, -0.1, -9.0], [False, False, True])
    assert margin_drop(old, new) == pytest.approx((3.0 - -0.5) / 2)
    assert margin_drop(new, old) == pytest.approx(-3.5 / 2)


def test_likelihood_counts_where_the_teacher_would_say_the_same() -> None:
    """It is counted in nats per token, and a fall is above 0."""
    old = score([-0.1, -0.2, -5.0], [-0.1, -0.2, 0.0], [True, True, False])
    new = score([-0.3, -0.4, -0.0], [-0.3, -0.4, 0.0], [True, True, False])
    assert likelihood_drop(old, new) == pytest.approx(0.2)


def test_without_such_positions_nothing_is_measured() -> None:
    """The result is None, not a fall of zero."""
    same, other = score([-1.0], [-1.0], [True]), score([-1.0], [-0.5], [False])
    assert margin_drop(same, same) is None
    assert likelihood_drop(other, other) is None
    assert worst(margin_drop, ["earlier"], "earlier", [same], [same]) is None
    assert worst(margin_drop, [], "earlier", [], []) is None


def test_the_worst_answer_of_its_kind_counts() -> None:
    """Answers of another kind do not count."""
    before = [score([-0.1], [-0.1], [True])] * 3
    after = [score([-x], [-x], [True]) for x in (0.2, 0.5, 9.0)]
    assert worst(likelihood_drop, ["gold", "gold", "earlier"], "gold", before, after) == pytest.approx(0.4)


@pytest.mark.parametrize(
    ("field", "value", "check"),
    [("earlier_drop", 2.1, "earlier"), ("gold_drop", 0.6, "gold"), ("anchor_divergence", 0.6, "neutral")],
)
def test_one_that_is_worse_than_the_old_one_is_refused(field: str, value: float, check: str) -> None:
    """The bounds and the reasons are those of every update."""
    measured = Measurements(is_finite=True, update_norm=0.0, steps=0, **{field: value})
    verdict = with_comparison(GOOD, measured, CONFIG.gate)
    assert (verdict.is_accepted, verdict.checks[check], verdict.checks["finite"]) == (False, False, True)
    assert verdict.reason


def test_one_that_is_as_good_passes_and_a_refused_one_stays_refused() -> None:
    """The comparison adds checks to the verdict and removes none."""
    measured = Measurements(is_finite=True, update_norm=0.0, steps=0, earlier_drop=0.1, gold_drop=0.0)
    passed = with_comparison(GOOD, measured, CONFIG.gate)
    assert (passed.is_accepted, passed.reason, passed.figures["earlier_drop"]) == (True, "", 0.1)
    refused = with_comparison(Verdict(False, "too much"), measured, CONFIG.gate)
    assert (refused.is_accepted, refused.reason) == (False, "too much")
