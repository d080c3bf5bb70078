"""One consolidation: what is new about a person and what they taught before become one larger update.

Owns the sequence gather -> train -> gates -> texts -> active version, and its record. A rebuild is one that begins from
zero: for a person who took a learned note back, whose adapter has drifted, or who asks for it (ADR 13). Invariants: the
update goes on from the active version, or from zero, and is taught by the configured teacher with every standing note;
the candidate writes the person's approved answers again before it is active, and one made from zero is held against the
version it replaces; the pointer flip, the marks on what was taken in and the record are one transaction, the last one,
so that whatever breaks off before it leaves the parent active and every signal new.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import Literal

from engine.adapter_ref import ZERO_ADAPTER, AdapterRef
from engine.adapters import undo
from engine.adapters.active import ActiveAdapters
from engine.config import EngineConfig, LearnConfig
from engine.consolidation import material
from engine.consolidation.approved_answers import ApprovedAnswers, Gold
from engine.consolidation.better_answers import BetterAnswers, with_better_answers
from engine.consolidation.follow_ups import with_follow_ups
from engine.consolidation.material import Material
from engine.consolidation.rebuild import RebuildCheck
from engine.consolidation.rehearsal import Rehearsals
from engine.gates.candidate import Verdict
from engine.learning.candidates import Candidates, Trained
from engine.learning.timer import PhaseTimer
from engine.requests import ConsolidationOutcome
from engine.sample import Sample
from engine.samples import facts, notes
from engine.samples.facts import Facts
from storage.conversations import completions
from storage.database import Database, Session
from storage.learning import better_answers, signals, updates, versions
from storage.people import people
from storage.tables import Note, UpdateRun, VersionState

REBUILD = "rebuild"  # the kind of such an UpdateRun
LEARNING_IS_OFF = "learning is off: /learning on turns it on"
_NOTHING = "there is nothing new to consolidate"
_AGREED = "the adapter holds all of it already"
_NOTHING_STANDS = "nothing stands any more: the base model answers"
_AGAINST_ZERO = ("unasked", "unasked_worst", "earlier_drop", "gold_drop")  # of a rebuild: measured against the base
_ROW_STATUS = {"learned": "accepted", "kept": "skipped", "rejected": "rejected"}

Status = Literal["learned", "kept", "rejected"]


@dataclass
class _Consolidation(PhaseTimer):
    """What one consolidation knows while it runs."""

    run: UpdateRun
    parent: AdapterRef
    material: Material
    live: list[Note]
    notes: list[str]  # what the teacher sees: those of `live` that show by themselves
    is_rebuild: bool = False
    num_weak: int = 0  # weak signals that train something
    trained: Trained = field(default_factory=Trained)

    @property
    def start(self) -> AdapterRef:
        """Where the training begins."""
        return ZERO_ADAPTER if self.is_rebuild else self.parent

    def outcome(self, status: Status, version: int, reason: str, verdict: Verdict | None) -> ConsolidationOutcome:
        """How it ended; `version` is active now."""
        return ConsolidationOutcome(
            status,
            version,
            reason,
            num_new=self.material.num_new,
            num_rehearsed=len(self.material.earlier),
            num_weak=self.num_weak,
            num_better=len(self.material.better_ids),
            steps=self.trained.steps,
            duration_ms=self.duration_ms,
            gate=verdict.to_dict() if verdict else {},
            update_id=self.run.id,
            is_rebuild=self.is_rebuild,
        )


class Consolidator:
    """Runs consolidations; the scheduler sees to it that nothing else trains meanwhile."""

    def __init__(
        self,
        config: EngineConfig,
        database: Database,
        served: ActiveAdapters,
        candidates: Candidates,
        rehearsals: Rehearsals,
        gold: ApprovedAnswers,
        curriculum: BetterAnswers,
        known: Facts,
        rebase: RebuildCheck,
        max_len: int,
    ) -> None:
        """Everything is built by the engine; `max_len`: tokens of the model's context."""
        self._config = config
        self._database = database
        self._served = served
        self._candidates = candidates
        self._rehearsals = rehearsals
        self._gold = gold
        self._curriculum = curriculum
        self._facts = known
        self._rebase = rebase
        self._max_len = max_len

    async def consolidate(self, user_id: str) -> ConsolidationOutcome:
        """Takes in what is new about a person. Raises EngineRestarting or TrainerError when it cannot finish."""
        user = await self._database.read(lambda s: people.get(s, user_id))
        if not user.is_learning:
            return ConsolidationOutcome("kept", user.active_version, LEARNING_IS_OFF)
        await self._curriculum.cycle(user_id)
        material = await self._database.read(lambda s: self._gathered(s, user_id))
        if not (material.num_new or material.better_ids):
            return ConsolidationOutcome("kept", user.active_version, _NOTHING)
        night = await self._begin(user_id, material, signals.CONSOLIDATION)
        async with self._closed_on_failure(night):
            night.is_rebuild = await self._rebase.has_drifted(night.parent)
            return await self._run(night)

    async def rebuild(self, user_id: str) -> ConsolidationOutcome:
        """Makes the adapter again from zero, out of the standing notes and the replay; what is new is taken in with it.

        Raises EngineRestarting or TrainerError when it cannot finish.
        """
        material = await self._database.read(lambda s: self._gathered(s, user_id))
        night = await self._begin(user_id, material, REBUILD)
        night.is_rebuild = True
        async with self._closed_on_failure(night):
            return await self._run(night)

    def _gathered(self, s: Session, user_id: str) -> Material:
        found = with_better_answers(s, user_id, material.gather(s, user_id, self._config.sleep), self._config)
        return with_follow_ups(s, user_id, found, self._config.sleep)

    async def _begin(self, user_id: str, material: Material, kind: str) -> _Consolidation:
        live = await self._facts.examine(user_id)
        said = notes.said(notes.showing(live), self._config.note, self._max_len)
        parent = await self._served.active(user_id)
        run = UpdateRun(user_id=user_id, kind=kind, parent_version=parent.number, notes=said)
        return _Consolidation(await self._database.write(lambda s: updates.start(s, run)), parent, material, live, said)

    async def _run(self, night: _Consolidation) -> ConsolidationOutcome:
        weak = await self._rehearsals.weighed(night.material.weak, night.notes)
        night.num_weak = len(weak)
        samples = await self._rehearsals.samples(
            night.run.user_id, night.start, night.live, night.notes, night.material, weak
        )
        night.lap("samples")
        if not any(sample.kind == "counterfactual" for sample in samples):
            return await self._kept(night)
        gold = await self._gold.held(night.run.user_id, night.parent)
        night.lap("gold")
        user = await self._database.read(lambda s: people.get(s, night.run.user_id))
        learn = self._config.learn.merged(user.lora_shape)
        num_facts = len(facts.asked(night.live, self._config.fact.max_questions))
        learn = replace(learn, steps=material.steps_of(len(samples), num_facts, self._config))
        return await self._tried(night, samples, learn, gold)

    async def _tried(
        self, night: _Consolidation, samples: list[Sample], learn: LearnConfig, gold: list[Gold]
    ) -> ConsolidationOutcome:
        """Trains and gates; a refused candidate is tried once more, gently."""
        outcome = await self._candidate(night, samples, learn, gold)
        if outcome.status == "rejected":
            outcome = await self._candidate(night, samples, learn.gentler(), gold)
        if outcome.status == "rejected":
            await self._database.write(lambda s: _record(s, night, outcome))
        return outcome

    async def _candidate(
        self, night: _Consolidation, samples: list[Sample], learn: LearnConfig, gold: list[Gold]
    ) -> ConsolidationOutcome:
        run, number = night.run, night.parent.number
        night.trained = await self._candidates.train(run.id, night.start, samples, learn)
        if night.is_rebuild:
            night.trained = night.trained.without(_AGAINST_ZERO)
        night.lap("train")
        if night.trained.divergence_before < self._config.sleep.min_divergence:
            await self._candidates.close(run.id)
            return await self._kept(night)
        verdict, version = await self._candidates.activate(
            run,
            night.start.number,
            night.trained,
            night.lap,
            examine=lambda ref, so_far: self._examined(night, gold, ref, so_far),
            also=lambda s, v, made: _record(s, night, night.outcome("learned", made.number, "", v), made.number),
        )
        if not verdict.is_accepted:
            return night.outcome("rejected", number, verdict.reason, verdict)
        return night.outcome("learned", version.number, "", verdict)

    async def _examined(self, night: _Consolidation, gold: list[Gold], ref: AdapterRef, verdict: Verdict) -> Verdict:
        """The last word on a candidate: one made from zero is held against the old one, each against liked answers."""
        if night.is_rebuild:
            verdict = await self._rebase.compared(night.run.user_id, night.notes, night.parent, ref, verdict)
        return await self._gold.judged(gold, ref, verdict) if verdict.is_accepted else verdict

    async def _kept(self, night: _Consolidation) -> ConsolidationOutcome:
        """Nothing to train: what was new is taken in all the same, or it would be looked at every night.

        Where zero is what it would be made from, zero holds all of it already.
        """
        outcome = night.outcome("kept", night.start.number, _NOTHING_STANDS if night.is_rebuild else _AGREED, None)
        await self._database.write(lambda s: _record_kept(s, night, outcome))
        return outcome

    @asynccontextmanager
    async def _closed_on_failure(self, night: _Consolidation) -> AsyncIterator[None]:
        """One that cannot finish leaves a row that says so and no candidate; one that has to give way is postponed."""
        try:
            yield
        except (Exception, asyncio.CancelledError) as error:
            status = "postponed" if isinstance(error, asyncio.CancelledError) else "failed"
            reason = str(error) or ("it gave way" if status == "postponed" else type(error).__name__)
            await self._database.write(lambda s: _record_failure(s, night, status, reason))
            raise


def _record(s: Session, night: _Consolidation, outcome: ConsolidationOutcome, version: int | None = None) -> None:
    """How it ended; unless it was refused, what was new is taken in."""
    updates.finish(
        s,
        night.run.id,
        status=_ROW_STATUS[outcome.status],
        duration_ms=outcome.duration_ms,
        phases_ms=dict(night.phases_ms),
        steps=outcome.steps,
        divergence_before=night.trained.divergence_before,
        divergence_after=night.trained.divergence_after,
        gate=outcome.gate or None,
        curves=night.trained.curves or None,
        version=version,
        error=outcome.reason,
    )
    if outcome.status == "rejected":
        return
    material, user_id = night.material, night.run.user_id
    signals.take_in(s, user_id, night.run.id, material.feedback_ids, material.completion_ids)
    better_answers.take_in(s, user_id, night.run.id, material.better_ids)
    for completion_id in material.kept_ids:
        completions.mark_gold(s, user_id, completion_id)


def _record_kept(s: Session, night: _Consolidation, outcome: ConsolidationOutcome) -> None:
    if night.is_rebuild:
        undo.return_to_base(s, night.run.user_id)
    _record(s, night, outcome)


def _record_failure(s: Session, night: _Consolidation, status: str, reason: str) -> None:
    if updates.get(s, night.run.user_id, night.run.id).status != "running":
        return  # it was cancelled while its last transaction was under way, and that went through
    updates.finish(s, night.run.id, status=status, duration_ms=night.duration_ms, error=reason)
    for version in versions.history(s, night.run.user_id):
        if version.update_id == night.run.id and version.state == VersionState.CANDIDATE:
            versions.reject(s, version.user_id, version.number)
