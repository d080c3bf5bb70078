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


@dataclass(frozen=True)
class Rehearsed:
    """The samples of one consolidation, by what they are for."""

    given: list[Sample]  # corrections and weak signals: the answer that was given, and the teacher's own
    facts: list[Sample]
    own: list[Sample]  # other prompts, answered by the student
    topics: list[Sample]  # and by the teacher
    untold: list[Sample]  # questions about what was never told
    anchors: list[Sample]
    held_out: list[Sample]  # measured, and not trained on

    @property
    def taught(self) -> list[Sample]:
        """The samples on which the teacher has something to say."""
        return [*self.given, *self.facts, *self.own, *self.topics]

    @property
    def all(self) -> list[Sample]:
        """Every sample with anything in it."""
        return [*usable([*self.taught, *self.untold]), *self.anchors, *self.held_out]


class Rehearsals:
    """Makes the samples of consolidations."""

    def __init__(self, context: LearningContext, facts: Facts) -> None:
        self._config = context.config
        self._trainer = context.trainer
        self._prompts = context.prompts
        self._rollouts = context.rollouts
        self._facts = facts

    async def samples(self, snapshot: Snapshot, view: View, weak: Weighed) -> Rehearsed:
        """Make all samples of a consolidation; `weak` are its weighed weak signals."""
        found = snapshot.material
        taught = [*((signal, 1.0) for signal in (*found.new, *found.earlier)), *weak]
        given = [replace(self._as_given(signal, view), weight=weight) for signal, weight in taught]
        given += await self._shown(view, taught, self._rollouts.length_for(snapshot.recent))
        facts = await self._facts.samples(view.start, view.live, view.notes, self._config.fact.max_questions)
        own, topics = await self._own(snapshot.recent, view, self._num_own(view, len(facts)))
        made = Rehearsed(
            given, facts, own, topics, untold=await self._facts.untold(view.live, len(facts)), anchors=[],
            held_out=regression_samples(snapshot.regression, view.notes, Hindsight(), self._prompts),
        )  # fmt: skip
        anchors = await self._rollouts.anchors(ZERO_ADAPTER, self._num_anchors(made))
        return replace(made, anchors=lessons.anchor_samples(anchors))

    def without_facts(self, made: Rehearsed, view: View) -> Rehearsed:
        """Return samples that were made already, but for the facts and for what a consolidation has because of them."""
        count = self._num_own(view, 0)
        fewer = replace(made, facts=[], untold=[], own=made.own[:count], topics=made.topics[: 2 * count])
        return replace(fewer, anchors=made.anchors[: self._num_anchors(fewer)])

    def _num_own(self, view: View, num_facts: int) -> int:
        """Return how many own prompts go along; none where the teacher sees nothing more than the student has."""
        if not view.notes and not num_facts:
            return 0
        return max(self._config.sleep.num_own, round(ANCHOR_SHARE * num_facts))

    def _num_anchors(self, made: Rehearsed) -> int:
        return max(self._config.learn.num_anchors, round(ANCHOR_SHARE * len(made.taught)))

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
        asked = [signal.rollout.messages for signal, _ in taught]
        seen = [teacher_messages(s.rollout.messages, s.said(view.notes), s.hindsight) for s, _ in taught]
        shown = await self._by_teacher(view.start, asked, seen, longest)
        return [replace(sample, weight=weight) for sample, (_, weight) in zip(shown, taught, strict=True)]

    async def _own(self, recent: Sequence[Completion], view: View, count: int) -> tuple[list[Sample], list[Sample]]:
        """Return `count` of the person's recent prompts and the bank's answered by the student, and twice as many
        answered by the teacher.
        """
        rollouts = await self._rollouts.take(view.start, recent, count) if count else []
        asked = self._rollouts.with_topics([r.messages for r in rollouts], 2 * count, recent) if count else []
        seen = [teacher_messages(messages, view.notes, Hindsight()) for messages in asked]
        own = [lessons.sample("counterfactual", r, view.notes, Hindsight(), self._prompts) for r in rollouts]
        return own, await self._by_teacher(view.start, asked, seen, self._rollouts.length_for(recent))

    async def _by_teacher(
        self, start: AdapterRef, asked: Sequence[list[ChatMessage]], seen: Sequence[list[ChatMessage]], longest: int
    ) -> list[Sample]:
        learn = self._config.learn
        ref = ZERO_ADAPTER if learn.is_teacher_bare else start
        responses = await self._rollouts.as_taught(ref, asked, seen, learn, longest)
        answers = zip(asked, seen, responses, strict=True)
        return [lessons.teacher_sample(a, t, response, self._prompts) for a, t, response in answers]
