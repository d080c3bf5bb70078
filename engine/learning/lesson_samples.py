"""The samples of a lesson: its own prompt, others, the teacher's answers, anchors, and held-out answers to measure by.

Reads storage and lets vLLM answer; changes nothing but the number of steps, which grows with what is rehearsed.
"""

import asyncio
import math
from collections.abc import Sequence
from dataclasses import replace

from engine.adapter_ref import ZERO_ADAPTER
from engine.config.learning import MAX_STEPS
from engine.learning.intent import NUM_OTHERS, Intent
from engine.learning.update_state import UpdateState
from engine.prompts.builder import PromptBuilder
from engine.prompts.hindsight import Hindsight, teacher_messages
from engine.prompts.tool_messages import carried
from engine.requests import ChatMessage
from engine.sample import Sample
from engine.samples import lessons, notes, regression
from engine.samples.context import LearningContext
from engine.samples.demonstrations import Demonstrations
from engine.samples.facts import Facts
from engine.samples.lessons import Lesson
from engine.samples.rollouts import Rollout, conversation, of_kind
from storage.learning import notes as note_rows


class LessonSamples:
    """Gathers the samples of lessons."""

    def __init__(self, context: LearningContext, facts: Facts) -> None:
        self._config = context.config
        self._database = context.database
        self._prompts = context.prompts
        self._rollouts = context.rollouts
        self._trainer = context.trainer
        self._host = context.host
        self._facts = facts

    async def counterfactuals(self, lesson: Lesson, update: UpdateState) -> list[Rollout]:
        """Return the person's own other prompts, answered by the version that goes on learning."""
        count, asked = update.learn.num_counterfactuals, lesson.corrected.messages
        return await self._rollouts.take(update.parent, update.recent, count, without=asked)

    async def whole(self, lesson: Lesson, update: UpdateState, others: Sequence[Rollout]) -> list[Sample]:
        """Return all that a wish is taught on but for the anchors: its own prompt, others and the teacher's answers."""
        teacher = self._demonstrations(lesson, update, lesson.general)
        given = [*(r.messages for r in (lesson.corrected, *others)), *await self._work(lesson, update.intent)]
        whole, begun = await asyncio.gather(teacher.whole(given), teacher.openings())
        update.lap("teacher rollouts")
        taught = lessons.samples(lesson, update.read, others, self.prompts_of(update))
        held_out = await self._held_out(lesson, update)
        others_held = await teacher.chats(update.parent)
        num_samples = len(taught) + len(whole) + len(begun) + len(others_held) + update.learn.num_anchors
        rehearsed = [*await self._rehearsed(update, num_samples), *others_held]
        return [*taught, *rehearsed, *whole, *begun, *held_out]

    async def first(self, lesson: Lesson, update: UpdateState) -> list[Sample]:
        """Return what a first version is trained on: the denied call, how the teacher has it, and where a wish shows.

        A call that is as wished may only be the first of two: lines are read before they are changed by number.
        """
        given = [lesson.corrected.messages, *update.intent.shown]
        shown = await self._demonstrations(lesson, update, lesson.general).to(given)
        update.lap("teacher rollouts")
        taught = lessons.samples(lesson, update.read, [], self.prompts_of(update))
        return [*taught, *shown, *await self._held_out(lesson, update)]

    async def alone(self, lesson: Lesson, update: UpdateState) -> list[Sample]:
        """Return what a remark is taught on: its own prompt, while others are held to what this version answers."""
        others = await self._rollouts.take(update.parent, [], NUM_OTHERS, without=lesson.corrected.messages)
        update.lap("rollouts")
        shown = await self._demonstrations(lesson, update, lesson.hindsight).to([lesson.corrected.messages])
        update.lap("teacher rollouts")
        prompts = self.prompts_of(update)
        taught = [*lessons.samples(lesson, update.notes, [], prompts), *lessons.steady_samples(others, prompts)]
        return [*taught, *shown, *await self._held_out(lesson, update)]

    async def with_anchors(self, lesson: Lesson, update: UpdateState, taught: list[Sample]) -> list[Sample]:
        """Return the samples, and neutral prompts that are held to the base model.

        Of more than are needed those are taken that the person's wishes change least: an answer that a wish would
        change, held as it was, is a lesson against the wish.
        """
        count = update.learn.num_anchors
        drawn = await self._rollouts.anchors(ZERO_ADAPTER, update.learn.anchor_choice * count)
        anchors = await self._least_moved(lesson, update, drawn) if len(drawn) > count else drawn
        return [*taught, *lessons.anchor_samples(anchors[:count])]

    async def _least_moved(self, lesson: Lesson, update: UpdateState, drawn: Sequence[Rollout]) -> list[Rollout]:
        """Return answers of the base model, first those that all the person has wished for changes least.

        Those that cannot be read beside it are the last.
        """
        live = await self._database.read(lambda s: note_rows.live(s, lesson.user_id))
        wishes = notes.said(live, self._config.note, self._host.max_model_len)
        told = lessons.told(wishes, lesson.general, drawn, self.prompts_of(update))
        moved = await self._trainer.divergences(told, ZERO_ADAPTER)
        return [drawn[place] for place in sorted(range(len(drawn)), key=lambda place: moved.get(place, math.inf))]

    def prompts_of(self, update: UpdateState) -> PromptBuilder:
        """Return prompts cut to what this update reads: a request may set less than the configuration."""
        return self._prompts.limited(update.learn.max_sequence_tokens)

    async def _rehearsed(self, update: UpdateState, num_samples: int) -> list[Sample]:
        """Return questions for facts that the weights hold: a lesson fades everything that no teacher speaks of.

        The steps grow with the samples, so that the lesson's own are gone through as often as without.
        """
        limit = self._config.fact.num_rehearsed
        samples = await self._facts.samples(update.parent, update.facts, update.notes, limit)
        update.lap("facts")
        steps = round(update.learn.steps * (1 + len(samples) / num_samples))
        update.learn = replace(update.learn, steps=min(MAX_STEPS, steps))
        return [sample for sample in samples if sample.response_ids]

    async def _held_out(self, lesson: Lesson, update: UpdateState) -> list[Sample]:
        """Return the answers that the gates measure and nothing is trained on."""
        found = await self._database.read(
            lambda s: regression.find(s, lesson.user_id, self._config.gate, without=lesson.completion.id)
        )
        return regression.regression_samples(found, update.notes, lesson.general, self.prompts_of(update))

    def _demonstrations(self, lesson: Lesson, update: UpdateState, hindsight: Hindsight) -> Demonstrations:
        """Return the teacher of a lesson, which reads the notes and what was said of an answer."""
        return Demonstrations(
            self._rollouts,
            self.prompts_of(update),
            update.learn,
            ZERO_ADAPTER if update.learn.is_teacher_bare else update.parent,
            lambda messages: teacher_messages(messages, update.read, hindsight),
            update.recent,
            lesson.corrected.messages,
        )

    async def _work(self, lesson: Lesson, intent: Intent) -> list[list[ChatMessage]]:
        """Return tasks on which a wish shows, and what was read before the calls of earlier ones (ADR 41)."""
        if not carried(lesson.corrected.messages):
            return []
        found = await self._database.read(lambda s: regression.wished(s, lesson.user_id, without=lesson.feedback_id))
        return [*intent.shown, *(conversation(row) for row in of_kind(found, lesson.corrected.messages))]
