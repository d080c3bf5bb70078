"""Tests of the samples of a consolidation, with the real engine."""

from dataclasses import replace
from typing import Any

import pytest

from engine.adapter_ref import ZERO_ADAPTER
from engine.config import ConsolidationConfig
from engine.consolidation.material import Material, Signal
from engine.consolidation.rehearsal import Rehearsals, View
from engine.consolidation.snapshot import take
from engine.prompts.hindsight import Hindsight
from engine.sample import Sample
from tests.engine.live import Live

pytestmark = [pytest.mark.engine, pytest.mark.asyncio(loop_scope="session")]

QUESTION = "Tell me about the koala"
NOTE = "use bullet points"
WORDS = "no emoji please"


def rehearsals(live: Live) -> Rehearsals:
    """Return the rehearsals of the running engine."""
    return live.parts.consolidator._rehearsals


async def signal(live: Live, user_id: str, words: str = WORDS) -> Signal:
    """Return words about a new answer as a signal."""
    return Signal("fb-1", await live.ask(user_id, QUESTION), Hindsight(feedback=words))


async def samples(live: Live, notes: list[str], new: list[Signal], weak: Any = ()) -> list[Sample]:
    """Return the samples of a consolidation that goes on from the base model."""
    user_id = (new or [found for found, _ in weak])[0].completion.user_id
    taken = await live.database.read(lambda s: take(s, user_id, live.engine.config))
    material = Material(new, [], [found for found, _ in weak], [], [], [])
    made = await rehearsals(live).samples(replace(taken, material=material), View(ZERO_ADAPTER, [], notes), weak)
    return made.all


async def test_notes_and_words_reach_the_teacher_only(live: Live) -> None:
    """Every student prompt is the plain conversation."""
    decode = live.host.tokenizer.decode
    found = await samples(live, [NOTE], [await signal(live, await live.person())])
    taught = [sample for sample in found if sample.kind == "counterfactual"]
    assert all(NOTE in decode(sample.teacher_ids) for sample in taught)
    assert sum(WORDS in decode(sample.teacher_ids) for sample in taught) == 2  # the answer given, the teacher's own
    assert not any(text in decode(sample.student_ids) for sample in found for text in (NOTE, WORDS))


async def test_own_prompts_and_enough_anchors_go_along(live: Live) -> None:
    """Own prompts and topics are taught the notes, and a quarter as many anchors hold the rest."""
    found = await samples(live, [NOTE], [await signal(live, await live.person())])
    kinds = [sample.kind for sample in found]
    num_own = live.engine.config.sleep.num_own
    assert kinds.count("counterfactual") >= 2 + 2 * num_own
    assert kinds.count("anchor") >= live.engine.config.learn.num_anchors
    assert kinds.count("anchor") >= kinds.count("counterfactual") // 4


async def test_without_notes_only_the_signals_are_taught(live: Live) -> None:
    """A teacher that sees no more than the student teaches nothing on other prompts."""
    found = await samples(live, [], [await signal(live, await live.person())])
    assert [sample.kind for sample in found].count("counterfactual") == 2


async def test_a_weak_signal_brings_its_weight(live: Live) -> None:
    """The weight holds for the given answer and for the teacher's own."""
    weak = [(await signal(live, await live.person()), 0.125)]
    found = await samples(live, [], [], weak)
    assert [s.weight for s in found if s.kind == "counterfactual"] == [0.125, 0.125]


async def test_what_is_too_long_for_the_trainer_is_shortened(live: Live) -> None:
    """One endless answer does not end every consolidation of its person: it is read as far as training reads."""
    one = await signal(live, await live.person())
    one.completion.completion_token_ids *= 1 + 4096 // len(one.completion.completion_token_ids)
    one.completion.logprobs *= 1 + 4096 // len(one.completion.logprobs)
    found = await samples(live, [], [one])
    assert [sample.kind for sample in found].count("counterfactual") == 2  # as given, and the teacher's own
    assert max(sample.num_tokens for sample in found) == live.parts.context.prompts.max_training_tokens


async def test_only_what_moves_the_teacher_weighs_anything(live: Live) -> None:
    """Words with a wish have their whole weight; thanks move no teacher and train nothing."""
    user_id = await live.person()
    telling, empty = await signal(live, user_id), await signal(live, user_id, "thank you")
    found = await rehearsals(live).weighed([telling, empty], [])
    assert [(weighed, weight) for weighed, weight in found] == [(telling, ConsolidationConfig().weak_weight)]
