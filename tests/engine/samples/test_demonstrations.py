"""engine.samples.demonstrations: what a lesson's teacher shows."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from engine.adapter_ref import ZERO_ADAPTER
from engine.config import LearnConfig
from engine.prompts.bank import load_bank
from engine.prompts.hindsight import with_notes
from engine.requests import ChatMessage
from engine.samples import lessons
from engine.samples.demonstrations import OPENING_LENGTH, Demonstrations, num_answers
from engine.samples.rollouts import RolloutStore
from tests.engine import updates_of
from tests.engine.live import Live

on_engine = pytest.mark.asyncio(loop_scope="session")
LEARN = LearnConfig(num_teacher_rollouts=4, max_rollout_tokens=24)


def teacher(live: Live, **fields: Any) -> Demonstrations:
    """Return a teacher who reads one note, with rollouts of its own: draws for other tests stay as they are."""
    context, learn = live.parts.context, replace(LEARN, **fields)
    rollouts = RolloutStore(live.host, context.trainer, context.prompts, load_bank(Path("no such model")), learn)

    def seen(messages: list[ChatMessage]) -> list[ChatMessage]:
        return with_notes(messages, ["no emoji please"])

    return Demonstrations(rollouts, context.prompts, learn, ZERO_ADAPTER, seen)


TOPICS = ("koala", "panda", "otter", "walrus", "violin", "ocarina", "polo", "churro", "aloe", "begonia")


@pytest.mark.parametrize(
    ("lengths", "most", "count"),
    [([64] * 8, 20, 8), ([32] * 8, 20, 16), ([8] * 8, 20, 20), ([8] * 8, 0, 8), ([200] * 8, 20, 8), ([], 20, 8)],
    ids=["long", "half as long", "short", "short, none more", "longer", "nothing"],
)
def test_short_answers_are_as_many_as_make_up_the_work(lengths: list[int], most: int, count: int) -> None:
    """At most the most, and never fewer than are asked for."""
    learn = LearnConfig(num_teacher_rollouts=8, max_rollout_tokens=64, max_teacher_rollouts=most)
    samples = [updates_of.sample(seed=seed, length=length) for seed, length in enumerate(lengths)]
    assert num_answers(samples, learn) == count


@pytest.mark.engine
@on_engine
async def test_whole_answers_weigh_the_same_together(live: Live) -> None:
    """Twice as many of them have half the weight each; every one is about another conversation."""
    few = await teacher(live).whole([])
    assert [sample.weight for sample in few] == [1.0] * len(few)
    many = await teacher(live, max_rollout_tokens=128, max_teacher_rollouts=8).whole([])
    assert len(many) > len(few)
    assert sum(sample.weight for sample in many) == pytest.approx(4)
    assert len({tuple(sample.student_ids) for sample in many}) == len(many)


@pytest.mark.engine
@on_engine
async def test_all_that_may_be_needed_are_made_at_the_same_time(live: Live, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first request is for as many as there may be; long answers are as few as they would be without."""
    numbers: list[int] = []
    real = RolloutStore.as_taught

    async def counted(store: RolloutStore, ref: Any, asked: Any, *rest: Any) -> list[list[int]]:
        numbers.append(len(asked))
        return await real(store, ref, asked, *rest)

    monkeypatch.setattr(RolloutStore, "as_taught", counted)
    whole = await teacher(live, max_teacher_rollouts=8).whole([])
    assert numbers[0] == 8
    assert LEARN.num_teacher_rollouts <= len(whole) <= 8
    few = await teacher(live, max_rollout_tokens=2, max_teacher_rollouts=8).whole([])
    assert len(few) <= LEARN.num_teacher_rollouts
    given: list[list[ChatMessage]] = [[{"role": "user", "content": f"Tell me about the {topic}."}] for topic in TOPICS]
    numbers.clear()
    await teacher(live, max_rollout_tokens=2, max_teacher_rollouts=8).whole(given)
    assert numbers[0] == len(given)  # what is given is asked for, however many


@pytest.mark.engine
@on_engine
async def test_openings_are_short_and_of_many_topics(live: Live) -> None:
    """The teacher's prompt has the note; none repeats itself; without a wish for them there are none."""
    assert await teacher(live).openings() == []
    begun = await teacher(live, num_openings=6).openings()
    assert 1 <= len(begun) <= 6
    assert {sample.kind for sample in begun} == {"opening"}
    assert all(0 < len(s.response_ids) <= OPENING_LENGTH and s.weight < 1 for s in begun)
    assert all(len(sample.teacher_ids) > len(sample.student_ids) for sample in begun)
    assert not any(any(lessons.repeated(sample.response_ids)) for sample in begun)
