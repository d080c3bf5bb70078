"""engine.gates.candidate: the candidates that become active and the reasons for those that do not."""

import json
import math
from dataclasses import fields, replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.config import ConfigError, GateConfig
from engine.gates.candidate import DIVERGENCE_FLOOR, GATES, Measurements, Verdict, judge

CONFIG = GateConfig(
    max_value_change=0.1,
    max_divergence_left=0.5,
    min_margin_gain=0.5,
    max_anchor_divergence=0.5,
    max_earlier_drop=1.0,
    max_gold_drop=0.5,
    max_unasked=0.05,
    max_unasked_worst=0.25,
    min_entropy_ratio=0.6,
    max_self_rouge=0.85,
    max_drift=2.0,
)
GOOD = Measurements(
    True,
    3.0,
    10,
    value_change=0.03,
    divergence_before=1.0,
    divergence_after=0.2,
    anchor_divergence=0.1,
    margin_before=-3.0,
    margin_after=1.0,
    earlier_drop=-0.5,
    gold_drop=0.1,
    unasked=0.01,
    unasked_worst=0.05,
    entropy_ratio=1.1,
    self_rouge=0.3,
    drift=0.2,
)
NOT_NUMBERS = (math.nan, math.inf, -math.inf)
MEASURED = [f.name for f in fields(Measurements) if f.name not in ("is_finite", "steps")]
NEEDED = ("update_norm", "value_change", "divergence_before", "divergence_after")
anything = st.floats(allow_nan=True, allow_infinity=True)


def test_a_good_candidate_passes_every_gate() -> None:
    """A candidate that passes is accepted without a reason, with the result of each gate."""
    verdict = judge(GOOD, CONFIG)
    assert verdict.is_accepted
    assert verdict.reason == ""
    assert verdict.checks == dict.fromkeys(GATES, True)


@pytest.mark.parametrize(
    ("gate", "change"),
    [
        ("finite", {"is_finite": False}),
        ("bounded", {"value_change": 0.101}),
        ("learned", {"divergence_after": 0.51}),
        ("learned", {"divergence_after": 1.5}),
        ("learned", {"divergence_before": None}),
        ("learned", {"divergence_after": None}),
        ("complies", {"margin_after": -2.5}),
        ("complies", {"margin_after": -4.0}),
        ("neutral", {"anchor_divergence": 0.501}),
        ("earlier", {"earlier_drop": 1.001}),
        ("gold", {"gold_drop": 0.501}),
        ("asked", {"unasked": 0.051}),
        ("asked", {"unasked_worst": 0.251}),
        ("entropy", {"entropy_ratio": 0.599}),
        ("variety", {"self_rouge": 0.851}),
        ("drift", {"drift": 2.001}),
    ],
)
def test_each_gate_refuses_on_its_own(gate: str, change: dict[str, float | bool | None]) -> None:
    """One bad figure fails its own gate and no other, and is enough to refuse."""
    verdict = judge(replace(GOOD, **change), CONFIG)
    assert not verdict.is_accepted
    assert [name for name, is_passed in verdict.checks.items() if not is_passed] == [gate]
    assert verdict.reason == GATES[gate][1]


def test_the_bound_is_the_same_for_adapters_of_every_size() -> None:
    """The norm of an adapter of 43 million values may be far above that of a small one with the same change each."""
    assert judge(replace(GOOD, update_norm=205.0), CONFIG).is_accepted


def test_an_operators_bound_on_the_whole_norm_still_holds() -> None:
    """It takes the place of the bound on each value, wider or narrower."""
    narrow, wide = replace(CONFIG, max_update_norm=2.0), replace(CONFIG, max_update_norm=1e9)
    assert not judge(GOOD, narrow).checks["bounded"]
    assert judge(replace(GOOD, value_change=9.0), wide).is_accepted
    with pytest.raises(ConfigError, match=r"max_update_norm must be above 0.*max_value_change"):
        replace(CONFIG, max_update_norm=0.0)


def test_a_divergence_rounded_below_zero_is_none_to_be_made_larger() -> None:
    """Half of a negative divergence is larger than the divergence, so the candidate has to come below it."""
    assert not judge(replace(GOOD, divergence_before=-4e-9, divergence_after=-3e-9), CONFIG).checks["learned"]


@pytest.mark.parametrize("value", NOT_NUMBERS)
@pytest.mark.parametrize("name", MEASURED)
def test_what_is_not_a_number_is_never_accepted(name: str, value: float) -> None:
    """NaN and the infinities in any figure fail the first gate, even if their sign would please another one."""
    verdict = judge(replace(GOOD, **{name: value}), CONFIG)
    assert not verdict.is_accepted
    assert not verdict.checks["finite"]


@given(figures=st.fixed_dictionaries({name: anything | st.none() for name in MEASURED}), is_finite=st.booleans())
def test_an_accepted_candidate_meets_every_limit(figures: dict[str, Any], is_finite: bool) -> None:
    """Acceptance means that all conditions hold, for any figures."""
    m = Measurements(is_finite, steps=1, **figures | {name: figures[name] or 0.0 for name in NEEDED[:2]})
    if not judge(m, CONFIG).is_accepted:
        return
    assert is_finite
    assert m.value_change <= CONFIG.max_value_change
    assert m.divergence_before is not None
    assert m.divergence_after is not None
    assert m.divergence_after < m.divergence_before
    assert m.divergence_after < max(CONFIG.max_divergence_left * m.divergence_before, DIVERGENCE_FLOOR)
    for name in ("anchor_divergence", "earlier_drop", "gold_drop", "unasked", "unasked_worst", "self_rouge", "drift"):
        value = getattr(m, name)
        assert value is None or value <= getattr(CONFIG, f"max_{name}")
    assert m.entropy_ratio is None or m.entropy_ratio >= CONFIG.min_entropy_ratio


@given(
    name=st.sampled_from(["anchor_divergence", "earlier_drop", "gold_drop", "unasked", "drift", "value_change"]),
    value=st.floats(0, 100),
    more=st.floats(0, 100),
)
def test_what_is_refused_stays_refused_when_it_gets_worse(name: str, value: float, more: float) -> None:
    """Each bound is one-sided: a larger figure is never better."""
    if not judge(replace(GOOD, **{name: value}), CONFIG).is_accepted:
        assert not judge(replace(GOOD, **{name: value + more}), CONFIG).is_accepted


@pytest.mark.parametrize("name", [name for name in MEASURED if name not in NEEDED])
def test_what_was_not_measured_does_not_refuse(name: str) -> None:
    """An update without anchors, without earlier lessons or without gold is judged by the other gates."""
    assert judge(replace(GOOD, **{name: None}), CONFIG).is_accepted


def test_the_first_failing_gate_is_named() -> None:
    """With several failures the reason is that of the first in order."""
    both = judge(replace(GOOD, is_finite=False, value_change=99.0), CONFIG)
    assert both.reason == judge(replace(GOOD, is_finite=False), CONFIG).reason


def test_a_verdict_is_plain_values() -> None:
    """A verdict can be stored and sent as JSON, even if a figure is no number."""
    plain = json.loads(
        json.dumps(judge(replace(GOOD, drift=math.nan, self_rouge=None), CONFIG).to_dict(), allow_nan=False)
    )
    assert plain["accepted"] is False
    assert plain["figures"]["drift"] is None
    assert plain["figures"]["update_norm"] == 3.0
    assert "self_rouge" not in plain["figures"]


REASONS = {"preserved": "Something was lost.", "compliant": "The form was lost."}


def test_further_checks_that_pass_leave_a_verdict_accepted() -> None:
    """Checks and figures are added, and a figure that was not measured is left out."""
    verdict = Verdict(True, "", {"finite": True}, {"drift": 0.1})
    more = verdict.and_checks({"preserved": True}, REASONS, {"preserved": 1.0, "fabricated": None})
    assert more == Verdict(True, "", {"finite": True, "preserved": True}, {"drift": 0.1, "preserved": 1.0})


def test_the_first_failing_check_of_several_verdicts_is_named() -> None:
    """A further check that fails refuses with its reason; an earlier refusal keeps its own."""
    checks = {"preserved": True, "compliant": False}
    assert Verdict(True).and_checks(checks, REASONS, {}) == Verdict(False, "The form was lost.", checks)
    refused = Verdict(False, "The lesson broke the numbers.", {"finite": False})
    assert refused.and_checks(checks, REASONS, {}).reason == refused.reason
    assert not refused.and_checks({"preserved": True}, REASONS, {}).is_accepted


@pytest.mark.parametrize(
    "change", [{"max_value_change": 0.0}, {"max_unasked": -0.1}, {"max_self_rouge": 1.1}, {"num_watched": -1}]
)
def test_a_gate_that_lets_nothing_through_is_refused(change: dict[str, Any]) -> None:
    """The error names the setting."""
    with pytest.raises(ConfigError, match=next(iter(change))):
        replace(CONFIG, **change)


@pytest.mark.parametrize(
    ("before", "after", "is_learned"), [(0.02, 0.015, True), (0.02, 0.025, False), (0.3, 0.2, False)]
)
def test_of_next_to_nothing_any_share_may_be_left(before: float, after: float, is_learned: bool) -> None:
    """A lesson that nearly held needs only come nearer; one that had far to go must arrive."""
    m = replace(GOOD, divergence_before=before, divergence_after=after)
    assert judge(m, CONFIG).checks["learned"] == is_learned
