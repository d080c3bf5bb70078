"""engine.gates: which candidates become active."""

import json
import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.config import GateConfig
from engine.gates import Measurements, judge

CONFIG = GateConfig(max_update_norm=10.0, min_divergence_drop=0.1, max_anchor_divergence=0.5)
GOOD = Measurements(True, 3.0, 10, divergence_before=1.0, divergence_after=0.2, anchor_divergence=0.1)
NOT_NUMBERS = (math.nan, math.inf, -math.inf)
anything = st.floats(allow_nan=True, allow_infinity=True)


def test_a_good_candidate_passes_every_gate() -> None:
    """Finite, bounded, learned and neutral: accepted, without a reason."""
    verdict = judge(GOOD, CONFIG)
    assert verdict.is_accepted
    assert verdict.reason == ""
    assert verdict.checks == {"finite": True, "bounded": True, "learned": True, "neutral": True}


@pytest.mark.parametrize(
    ("gate", "change"),
    [
        ("finite", {"is_finite": False}),
        ("bounded", {"update_norm": 10.001}),
        ("learned", {"divergence_after": 0.9}),
        ("learned", {"divergence_after": 1.5}),
        ("learned", {"divergence_before": None}),
        ("learned", {"divergence_after": None}),
        ("neutral", {"anchor_divergence": 0.501}),
    ],
)
def test_each_gate_refuses_on_its_own(gate: str, change: dict[str, float | bool | None]) -> None:
    """One bad figure fails its own gate and no other, and is enough to refuse."""
    verdict = judge(replace(GOOD, **change), CONFIG)
    assert not verdict.is_accepted
    assert [name for name, is_passed in verdict.checks.items() if not is_passed] == [gate]
    assert verdict.reason


@pytest.mark.parametrize("value", NOT_NUMBERS)
@pytest.mark.parametrize("field", ["update_norm", "divergence_before", "divergence_after", "anchor_divergence"])
def test_what_is_not_a_number_is_never_accepted(field: str, value: float) -> None:
    """NaN and the infinities in any figure fail the first gate, also where their sign would please another one."""
    verdict = judge(replace(GOOD, **{field: value}), CONFIG)
    assert not verdict.is_accepted
    assert not verdict.checks["finite"]


@given(norm=anything, before=anything, after=anything, anchor=anything | st.none(), is_finite=st.booleans())
def test_an_accepted_candidate_meets_every_limit(
    norm: float, before: float, after: float, anchor: float | None, is_finite: bool
) -> None:
    """Whatever was measured, acceptance means that all four conditions hold."""
    verdict = judge(Measurements(is_finite, norm, 1, before, after, anchor), CONFIG)
    if verdict.is_accepted:
        assert is_finite
        assert norm <= CONFIG.max_update_norm
        assert before - after > CONFIG.min_divergence_drop
        assert anchor is None or anchor <= CONFIG.max_anchor_divergence


def test_what_was_not_measured_on_neutral_prompts_does_not_refuse() -> None:
    """An update without anchors is judged by the other gates."""
    assert judge(replace(GOOD, anchor_divergence=None), CONFIG).is_accepted


def test_the_first_failing_gate_is_named() -> None:
    """With several failures the reason is that of the first in order."""
    both = judge(replace(GOOD, is_finite=False, update_norm=99.0), CONFIG)
    assert both.reason == judge(replace(GOOD, is_finite=False), CONFIG).reason


def test_a_verdict_is_plain_values() -> None:
    """It can be stored and sent as JSON."""
    assert json.loads(json.dumps(judge(GOOD, CONFIG).to_dict()))["accepted"] is True
