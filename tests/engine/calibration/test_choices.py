"""engine.calibration.choices: the rate that is worth most, and bounds beyond good lessons."""

from dataclasses import replace
from typing import Any

import pytest

from engine.calibration import choices
from engine.calibration.trials import Trial
from engine.config import GateConfig
from engine.gates.candidate import Measurements, judge

GOOD = Trial(
    "short",
    before=0.3,
    after=0.1,
    left=0.2,
    neutral=0.02,
    anchor=0.01,
    unasked=0.01,
    unasked_worst=0.1,
    value_change=0.003,
    opened=0.0,
)
BROKEN = replace(GOOD, after=0.6, left=1.8, neutral=0.5, anchor=0.4, unasked=0.3, unasked_worst=1.5, value_change=0.03)


def test_going_beyond_the_teacher_is_worth_no_more_than_reaching_it() -> None:
    """Few tokens are looked at, so a lesson now and then closes twice of what lay between."""
    assert choices.worth([replace(GOOD, opened=1.8)]) == choices.worth([replace(GOOD, opened=1.0)])
    assert choices.worth([replace(GOOD, opened=0.9)]) < choices.worth([replace(GOOD, opened=1.0)])


def test_the_share_closed_is_of_held_out_answers() -> None:
    """Nothing is closed if nothing was open."""
    assert GOOD.closed == pytest.approx(2 / 3)
    assert replace(GOOD, before=0.0).closed == 0
    assert BROKEN.closed < 0


def test_the_best_rate_weighs_what_is_learned_against_what_it_costs() -> None:
    """Half learned is worse, learned at the price of neutral answers is worse; of equals the lower rate is taken."""
    half, dear = replace(GOOD, after=0.2), replace(GOOD, after=0.08, neutral=0.2)
    assert choices.best_rate({1e-4: [half], 1e-3: [GOOD], 1e-2: [dear]}) == 1e-3
    assert choices.best_rate({1e-3: [GOOD], 1e-2: [GOOD]}) == 1e-3
    assert choices.best_rate({1e-4: [replace(GOOD, opened=0.1)], 1e-3: [replace(GOOD, opened=0.8)]}) == 1e-3


def test_a_rate_beyond_is_tried_until_the_best_one_lies_between_two_others() -> None:
    """Half the lowest, twice the highest."""
    worse = replace(GOOD, after=0.2)
    assert choices.beyond({1e-3: [GOOD], 2e-3: [worse]}) == 5e-4
    assert choices.beyond({1e-3: [worse], 2e-3: [GOOD]}) == 4e-3
    assert choices.beyond({5e-4: [worse], 1e-3: [GOOD], 2e-3: [worse]}) is None


def test_the_bounds_let_good_lessons_pass_and_stop_broken_ones() -> None:
    """Through the gates themselves."""
    varied = [GOOD, replace(GOOD, left=0.35, anchor=0.03, unasked=0.02, unasked_worst=0.2, value_change=0.004)]
    bounds: dict[str, Any] = dict(choices.bounds(varied))
    gate = GateConfig(**bounds)
    for trial in varied:
        assert judge(measured(trial), gate).is_accepted
    verdict = judge(measured(BROKEN), gate)
    failed = {name for name, is_passed in verdict.checks.items() if not is_passed}
    assert {"bounded", "learned", "neutral", "asked"} <= failed


def test_a_wish_that_the_model_cannot_follow_sets_no_bound() -> None:
    """It moves the teacher by nothing, so nearly all of nothing is left."""
    deaf = replace(GOOD, before=0.001, after=0.002, left=0.99)
    assert choices.bounds([GOOD, deaf]) == choices.bounds([GOOD])
    assert choices.bounds([deaf])["max_divergence_left"] <= 1


def test_the_summary_names_every_rate_and_wish() -> None:
    """As it is kept in the file."""
    found = choices.summary({1e-3: [GOOD]}, [GOOD], [replace(GOOD, feedback="ok")])
    assert list(found["rates"]) == ["0.001"]
    assert list(found["closed"]) == ["short"]


def measured(trial: Trial) -> Measurements:
    """Return what a gate would see of a trial."""
    return Measurements(
        is_finite=True,
        update_norm=7.0,
        value_change=trial.value_change,
        steps=20,
        divergence_before=trial.before,
        divergence_after=trial.left * trial.before,
        anchor_divergence=trial.anchor,
        unasked=trial.unasked,
        unasked_worst=trial.unasked_worst,
    )
