"""The samples of a consolidation: corrections rehearsed, facts asked for, weak signals weighed, own prompts, anchors.

Owns the way from a `Snapshot` to samples. Invariants: feedback and notes reach the teacher's prompts only; the teacher
answers each corrected prompt, too, because the student is about to go there (ADR 5); a conversation that is longer than
the trainer reads is shortened, as in lessons (`engine.samples.pairs`).
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from engine.adapter_ref import ZERO_ADAPTER, AdapterRef
from engine.consolidation import material
from engine.consolidation.material import Signal
from engine.consolidation.snapshot import Snapshot
from engine.prompts.hindsight import Hindsight, teacher_messages
from engine.requests import ChatMessage
from engine.sample import Sample
from engine.samples import lessons
from engine.samples.context import LearningContext
from engine.samples.facts import Facts
from engine.samples.pairs import usable
from engine.samples.regression import regression_samples
from storage.tables import Completion, Note

Weighed = Sequence[tuple[Signal, float]]
ANCHOR_SHARE = 0.25  # anchors for each taught sample: a larger update is held by more of them


@dataclass(frozen=True)
class View:
    """The notes and the start that student and teacher of one consolidation see."""

    start: AdapterRef  # what the training goes on from
    live: Sequence[Note]  # every standing note
    notes: Sequence[str]  # those that show by themselves, as the teacher reads them

    def without_facts(self) -> "View":
        """Return the view of an update that asks for no fact."""
        return replace(self, live=[note for note in self.live if not note.questions])


class Rehearsals:
    """Makes the samples of consolidations."""

    def __init__(self, context: LearningContext, facts: Facts) -> None:
        self._config = context.config
        self._trainer = context.trainer
        self._prompts = context.prompts
        self._rollouts = context.rollouts
        self._facts = facts

    async def samples(self, snapshot: Snapshot, view: View, weak: Weighed) -> list[Sample]:
        """Make all samples of a consolidation; `weak` are its weighed weak signals."""
        found = snapshot.material
        taught = [*((signal, 1.0) for signal in (*found.new, *found.earlier)), *weak]
        samples = [replace(self._as_given(signal, view), weight=weight) for signal, weight in taught]
        samples += await self._shown(view, taught, self._rollouts.length_for(snapshot.recent))
        facts = await self._facts.samples(view.start, view.live, view.notes, self._config.fact.max_questions)
        samples += facts
        if view.notes or facts:  # without, a teacher sees nothing more than the student has, and has nothing to say
            count = max(self._config.sleep.num_own, round(ANCHOR_SHARE * len(facts)))
            samples += await self._own(snapshot.recent, view, count)
        num_anchors = max(self._config.learn.num_anchors, round(ANCHOR_SHARE * len(samples)))
        anchors = lessons.anchor_samples(await self._rollouts.anchors(ZERO_ADAPTER, num_anchors))
        samples += await self._facts.untold(view.live, len(facts))
        held_out = regression_samples(snapshot.regression, view.notes, Hindsight(), self._prompts)
        return [*usable(samples), *anchors, *held_out]

    async def weighed(self, weak: Sequence[Signal], notes: Sequence[str]) -> list[tuple[Signal, float]]:
        """Return the weak signals with their weights: those that move the teacher enough, or have one of their own."""
        found = []
        gaps = zip(weak, material.gaps(weak, notes, self._prompts), strict=True)
        fitting = [(signal, gap) for signal, gap in gaps if gap.response_ids]
        scores = await self._trainer.score([gap for _, gap in fitting], ZERO_ADAPTER)
        for (signal, _), score in zip(fitting, scores, strict=True):
            moved = material.weight_of(score.divergence, self._config.sleep, signal.most, signal.least)
            found.append((signal, moved if signal.weight is None else signal.weight))
        return [(signal, weight) for signal, weight in found if weight > 0]

    def _as_given(self, signal: Signal, view: View) -> Sample:
        notes = signal.said(view.notes)
        return lessons.sample("counterfactual", signal.rollout, notes, signal.hindsight, self._prompts)

    async def _shown(self, view: View, taught: Weighed, longest: int) -> list[Sample]:
        asked = [signal.completion.messages for signal, _ in taught]
        seen = [teacher_messages(s.completion.messages, s.said(view.notes), s.hindsight) for s, _ in taught]
        shown = await self._by_teacher(view.start, asked, seen, longest)
        return [replace(sample, weight=weight) for sample, (_, weight) in zip(shown, taught, strict=True)]

    async def _own(self, recent: Sequence[Completion], view: View, count: int) -> list[Sample]:
        """Return the person's recent prompts and some of the bank, answered by the student and by the teacher."""
        rollouts = await self._rollouts.take(view.start, recent, count)
        asked = self._rollouts.with_topics([r.messages for r in rollouts], 2 * count, recent)
        seen = [teacher_messages(messages, view.notes, Hindsight()) for messages in asked]
        own = [lessons.sample("counterfactual", r, view.notes, Hindsight(), self._prompts) for r in rollouts]
        return [*own, *await self._by_teacher(view.start, asked, seen, self._rollouts.length_for(recent))]

    async def _by_teacher(
        self, start: AdapterRef, asked: Sequence[list[ChatMessage]], seen: Sequence[list[ChatMessage]], longest: int
    ) -> list[Sample]:
        ref = ZERO_ADAPTER if self._config.learn.is_teacher_bare else start
        answers = zip(asked, seen, await self._rollouts.by_teacher(ref, seen, longest), strict=True)
        return [lessons.teacher_sample(a, t, response, self._prompts) for a, t, response in answers]
