"""engine.calibration.trials: a lesson to nobody, measured on answers that nothing was trained on."""

from dataclasses import replace

import pytest

from engine.adapter_ref import ZERO_ADAPTER
from engine.calibration.trials import _TRIAL, Trials, _opened
from engine.sample import Score
from engine.samples import lessons
from engine.samples.demonstrations import OPENING_LENGTH
from tests.engine.live import Live

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def test_a_wish_is_learned_and_nothing_is_left_of_it(live: Live) -> None:
    """The held-out answers come nearer to the teacher's; the base answers as before; the worker has forgotten it."""
    await live.alone()
    context = live.parts.context
    anchors = lessons.anchor_samples(await context.rollouts.anchors(ZERO_ADAPTER, 3))
    before = await context.trainer.score_in_turn(anchors, ZERO_ADAPTER)
    trial = await Trials(context, live.parts.candidates).give("please use no emoji", live.engine.config.learn)
    assert trial.closed > 0.3, trial
    assert 0 <= trial.left < 0.5, trial
    assert trial.value_change > 0
    assert await context.trainer.score_in_turn(anchors, ZERO_ADAPTER) == before
    assert not (await live.host.rpc("heed_score", [s.to_dict() for s in anchors], _TRIAL.to_dict()))["ok"]


async def test_a_wish_is_tried_on_the_same_answers_at_every_rate(live: Live) -> None:
    """So that its figures differ by the rate; another wish has others."""
    await live.alone()
    learn = live.engine.config.learn
    trials = Trials(live.parts.context, live.parts.candidates)
    first = await trials._material("please use no emoji", learn)
    assert await trials._material("please use no emoji", replace(learn, learning_rate=1e-5)) == first
    other = await trials._material("shorter, please", learn)
    assert other.held_out != first.held_out
    assert not [sample for sample in first.neutral if sample in first.trained_on]


async def test_a_trial_shows_openings_as_a_lesson_does(live: Live) -> None:
    """A rate that is chosen without them would be chosen for another lesson."""
    await live.alone()
    learn = replace(live.engine.config.learn, num_openings=3)
    material = await Trials(live.parts.context, live.parts.candidates)._material("please use no emoji", learn)
    begun = [s for s in material.trained_on if s.kind == "opening"]
    assert 1 <= len(begun) <= 3
    assert all(len(s.response_ids) <= OPENING_LENGTH for s in begun)


def opening(teacher: float, student: float) -> Score:
    """An answer of one token with these log-probabilities."""
    return Score([student], [teacher], 0.0, 0.0, 0.0, [], [])


async def test_the_share_of_openings_is_bounded_where_there_is_nothing_to_close() -> None:
    """Where both begin alike any small change is many times what lay between; that would outweigh all other wishes."""
    apart, alike = opening(-0.1, -2.1), opening(-0.1, -0.2)
    assert _opened([apart], [opening(-0.1, -0.6)]) == pytest.approx(0.75)
    assert _opened([alike], [opening(-0.1, -0.7)]) == -1.0
    assert _opened([opening(-0.1, -0.1)], [alike]) == 0.0
