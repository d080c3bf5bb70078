"""engine.calibration.trials: a lesson to nobody, measured on answers that nothing was trained on."""

import pytest

from engine.adapter_ref import ZERO_ADAPTER
from engine.calibration.trials import _TRIAL, Trials
from engine.samples import lessons
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
