"""engine.learning.lesson_samples: what a lesson's samples are, by the kind of lesson."""

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from bot.agent.state import SYSTEM
from bot.agent.tools import definitions
from engine.adapter_ref import ZERO_ADAPTER, AdapterRef
from engine.config import LearnConfig
from engine.learning.lesson_samples import LessonSamples
from engine.learning.update_state import UpdateState
from engine.requests import ChatMessage
from engine.sample import Sample
from engine.samples.lessons import Lesson
from engine.samples.rollouts import Rollout
from storage.learning import updates
from storage.tables import UpdateRun
from tests.engine.live import Live

pytestmark = [pytest.mark.engine, pytest.mark.asyncio(loop_scope="session")]


async def _lesson(live: Live, **options: Any) -> tuple[LessonSamples, Lesson, UpdateState]:
    answer = await live.ask(await live.person(), "Change host from low to high in app.cfg.", **options)
    row = await live.say(answer, "use edit_lines, not edit")
    parent = await live.parts.context.active.active(answer.user_id)
    run = UpdateRun(user_id=answer.user_id, feedback_id=row.id, kind=row.kind, parent_version=0)
    update = UpdateState(
        run=await live.database.write(lambda s: updates.start(s, run)),
        parent=parent,
        learn=LearnConfig(),
        notes=[],
        facts=[],
    )
    return LessonSamples(live.parts.context, live.parts.learner._samples._facts), Lesson.of(row, answer), update


async def test_a_first_version_is_taught_the_denied_call_and_where_the_wish_shows(live: Live) -> None:
    """The call itself and what the teacher says in its place, and its answer to each task that is shown."""
    system = {"role": "system", "content": SYSTEM}
    samples, lesson, update = await _lesson(live, prior=(system,), tools=tuple(definitions()))
    found = await samples.first(lesson, update)
    assert {sample.kind for sample in found} == {"correction", "counterfactual"}
    assert len({tuple(sample.student_ids) for sample in found}) == 1
    assert all(sample.teacher_ids != sample.student_ids for sample in found)
    task: ChatMessage = {"role": "user", "content": "Set host to low in app.cfg."}
    update.intent = replace(update.intent, shown=([task],))
    assert len({tuple(sample.student_ids) for sample in await samples.first(lesson, update)}) == 2


async def test_a_whole_lesson_has_other_prompts_too(live: Live) -> None:
    """And a remark's other prompts are held to what the version answers."""
    samples, lesson, update = await _lesson(live)
    whole = await samples.whole(lesson, update, [])
    assert len({tuple(sample.student_ids) for sample in whole}) > update.learn.num_teacher_rollouts // 2
    alone = await samples.alone(lesson, update)
    others = [sample for sample in alone if sample.student_ids != alone[0].student_ids]
    assert others
    assert all(sample.kind == "anchor" for sample in others)


async def test_anchors_are_added_at_the_end(live: Live) -> None:
    """As many as the update has."""
    samples, lesson, update = await _lesson(live)
    taught = await samples.first(lesson, update)
    found = await samples.with_anchors(lesson, update, taught)
    assert found[: len(taught)] == taught
    assert [sample.kind for sample in found[len(taught) :]] == ["anchor"] * update.learn.num_anchors


async def test_of_the_anchors_drawn_those_are_taken_that_the_wishes_change_least(
    live: Live, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By how far all that was told moves the base model's answers; one that cannot be read beside it comes last."""
    samples, lesson, update = await _lesson(live)
    update.learn = replace(update.learn, num_anchors=2, anchor_choice=3)
    drawn = await samples._rollouts.anchors(ZERO_ADAPTER, 6)
    drawn[0] = replace(drawn[0], messages=[{"role": "system", "content": "be kind " * 4000}, *drawn[0].messages])
    moved, told = [0.5, 0.1, 0.4, 0.2, 0.3], list[Sample]()

    async def as_drawn(base: AdapterRef, count: int) -> list[Rollout]:
        return drawn[:count]

    async def by_place(pairs: list[Sample], base: AdapterRef) -> list[SimpleNamespace]:
        told.extend(pairs)
        return [SimpleNamespace(divergence=value) for value in moved]

    monkeypatch.setattr(samples._rollouts, "anchors", as_drawn)
    monkeypatch.setattr(samples._trainer, "score_in_turn", by_place)
    found = await samples.with_anchors(lesson, update, [])
    assert [sample.response_ids for sample in found] == [drawn[n].response_token_ids for n in (2, 4)]
    assert all(pair.teacher_ids != pair.student_ids for pair in told), "the wish is in view of one side"
    update.learn = replace(update.learn, num_anchors=6, anchor_choice=1)
    assert len(await samples.with_anchors(lesson, update, [])) == 6, "nothing is to be chosen"
