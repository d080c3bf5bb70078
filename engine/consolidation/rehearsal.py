"""What a consolidation trains on: corrections rehearsed, facts asked for, weak signals weighed, own prompts, anchors.

Owns the way from `engine.consolidation.material.Material` to samples. Invariants: feedback and notes reach the
teacher's prompts only; each corrected prompt is answered by the teacher, too, where the student is about to go (ADR 5);
a sample that is longer than the trainer takes is left out rather than ending the consolidation.
"""

from collections.abc import Sequence
from dataclasses import replace

from engine.adapter_ref import ZERO_ADAPTER, AdapterRef
from engine.config import EngineConfig
from engine.consolidation import material
from engine.consolidation.material import Material, Signal
from engine.host.trainer_client import TrainerClient
from engine.host.vllm_host import VllmHost
from engine.prompts.builder import PromptBuilder
from engine.prompts.hindsight import Hindsight, teacher_messages
from engine.sample import Sample
from engine.samples import lessons, regression
from engine.samples.facts import Facts
from engine.samples.rollouts import RolloutStore
from storage.conversations import completions
from storage.database import Database
from storage.tables import Note

ChatMessage = dict[str, str]
Weighed = Sequence[tuple[Signal, float]]
ANCHOR_SHARE = 0.25  # anchors for each taught sample: a larger update is held by more of them
_RECENT = 32  # completions looked at for a person's own prompts


class Rehearsals:
    """Makes the samples of consolidations."""

    def __init__(
        self,
        config: EngineConfig,
        database: Database,
        host: VllmHost,
        prompts: PromptBuilder,
        rollouts: RolloutStore,
        facts: Facts,
    ) -> None:
        """Everything is built by the engine."""
        self._config = config
        self._database = database
        self._trainer = TrainerClient(host)
        self._prompts = prompts
        self._rollouts = rollouts
        self._facts = facts

    async def samples(
        self,
        user_id: str,
        parent: AdapterRef,
        live: Sequence[Note],
        notes: Sequence[str],
        material: Material,
        weak: Weighed,
    ) -> list[Sample]:
        """All samples of a consolidation; `weak` are its weighed weak signals, `notes` those of `live` that show."""
        taught = [*((signal, 1.0) for signal in (*material.new, *material.earlier)), *weak]
        samples = [
            replace(
                lessons.sample("counterfactual", found.rollout, found.said(notes), found.hindsight, self._prompts),
                weight=weight,
            )
            for found, weight in taught
        ]
        samples += await self._shown(parent, notes, taught)
        facts = await self._facts.samples(parent, live, notes, self._config.fact.max_questions)
        samples += facts
        if notes or facts:  # without, a teacher sees nothing more than the student has, and has nothing to say
            count = max(self._config.sleep.num_own, round(ANCHOR_SHARE * len(facts)))
            samples += await self._own(user_id, parent, notes, count)
        num_anchors = max(self._config.learn.num_anchors, round(ANCHOR_SHARE * len(samples)))
        anchors = lessons.anchor_samples(await self._rollouts.anchors(ZERO_ADAPTER, num_anchors))
        fitting = [sample for sample in (*samples, *await self._facts.untold(live)) if self._fits(sample)]
        return [*fitting, *anchors, *await self._watched(user_id, notes)]

    async def weighed(self, weak: Sequence[Signal], notes: Sequence[str]) -> list[tuple[Signal, float]]:
        """The weak signals that move the teacher enough to train anything, or have a weight of their own; with it."""
        found = []
        scores = await self._trainer.score(material.gaps(weak, notes, self._prompts), ZERO_ADAPTER)
        for signal, score in zip(weak, scores, strict=True):
            moved = material.weight_of(score.divergence, self._config.sleep, signal.most, signal.least)
            found.append((signal, moved if signal.weight is None else signal.weight))
        return [(signal, weight) for signal, weight in found if weight > 0]

    async def _shown(self, parent: AdapterRef, notes: Sequence[str], taught: Weighed) -> list[Sample]:
        asked = [signal.completion.messages for signal, _ in taught]
        seen = [teacher_messages(s.completion.messages, s.said(notes), s.hindsight) for s, _ in taught]
        shown = await self._by_teacher(parent, asked, seen)
        return [replace(sample, weight=weight) for sample, (_, weight) in zip(shown, taught, strict=True)]

    async def _own(self, user_id: str, parent: AdapterRef, notes: Sequence[str], count: int) -> list[Sample]:
        """The person's recent prompts and some of the bank, answered by the student and by the teacher."""
        recent = await self._database.read(lambda s: completions.recent(s, user_id, _RECENT))
        rollouts = await self._rollouts.take(parent, recent, count)
        asked = self._rollouts.with_topics([r.messages for r in rollouts], 2 * count)
        seen = [teacher_messages(messages, notes, Hindsight()) for messages in asked]
        own = [lessons.sample("counterfactual", r, notes, Hindsight(), self._prompts) for r in rollouts]
        return [*own, *await self._by_teacher(parent, asked, seen)]

    async def _by_teacher(
        self, parent: AdapterRef, asked: Sequence[list[ChatMessage]], seen: Sequence[list[ChatMessage]]
    ) -> list[Sample]:
        ref = ZERO_ADAPTER if self._config.learn.is_teacher_bare else parent
        answers = zip(asked, seen, await self._rollouts.by_teacher(ref, seen), strict=True)
        return [lessons.teacher_sample(a, t, response, self._prompts) for a, t, response in answers]

    async def _watched(self, user_id: str, notes: Sequence[str]) -> list[Sample]:
        found = await self._database.read(lambda s: regression.find(s, user_id, self._config.gate))
        return [s for s in regression.regression_samples(found, notes, Hindsight(), self._prompts) if self._fits(s)]

    def _fits(self, sample: Sample) -> bool:
        longest = max(sample.length(context) for context in ("student", "teacher", "behaviour"))
        return len(sample.response_ids) > 0 and longest <= self._config.learn.max_sequence_tokens
