"""One consolidation: new signals about a person and earlier lessons become one larger update.

Owns the sequence snapshot -> samples -> train -> gates -> texts -> active version, and its record. A rebuild begins
from zero: for a person who took a learned note back, whose adapter has drifted, or who asks for it (ADR 13).
Invariants: the update goes on from the active version, or from zero, and is taught by the configured teacher with every
standing note; the candidate writes the person's approved answers again before it is active, and one made from zero is
held against the version it replaces; the pointer flip, the marks on what was taken in and the record are one
transaction, the last one, so that anything that breaks off before it leaves the parent active and every signal new.
"""

import asyncio
from contextlib import AbstractAsyncContextManager, suppress
from dataclasses import dataclass, field, replace
from functools import partial

from engine.adapter_ref import ZERO_ADAPTER, AdapterRef
from engine.adapters import undo
from engine.config import LearnConfig
from engine.consolidation import material
from engine.consolidation import snapshot as snapshots
from engine.consolidation.approved_answers import ApprovedAnswers, Gold
from engine.consolidation.better_answers import BetterAnswers
from engine.consolidation.rebuild import RebuildCheck
from engine.consolidation.rehearsal import Rehearsals, View
from engine.consolidation.snapshot import Snapshot
from engine.gates.candidate import Verdict
from engine.host.trainer_client import Trained
from engine.learning import update_log
from engine.learning.candidates import Acceptance, Candidates
from engine.learning.endings import LEARNING_IS_OFF
from engine.learning.update_log import PhaseTimer, Status
from engine.requests import ConsolidationOutcome
from engine.sample import Sample
from engine.samples import facts, notes
from engine.samples.context import LearningContext
from engine.samples.facts import Facts
from storage.conversations import completions
from storage.database import Session
from storage.errors import CompletionNotFound
from storage.learning import better_answers, signals, updates
from storage.learning import notes as note_rows
from storage.tables import Note, UpdateRun

REBUILD = "rebuild"  # the kind of such an UpdateRun
_NOTHING = "There is nothing new to consolidate."
_AGREED = "Your adapter follows all of it already."
_STAY_NOTES = "What you told stays in your notes, beside its questions: in the weights it led to wrong answers."
_NOTHING_STANDS = "Nothing you taught is left, so the base model answers."
_MADE_UP, _TOLD = "made_up", "told"  # the gates on answers to what was never told, and to what was
_REASONS = {
    _MADE_UP: "It began to answer what it was never told.",
    _TOLD: "It no longer answered what was told.",
}
_AGAINST_ZERO = ("unasked", "unasked_worst", "earlier_drop", "gold_drop")  # of a rebuild: measured against the base


@dataclass
class _Consolidation(PhaseTimer):
    """The state of one consolidation while it runs."""

    run: UpdateRun
    parent: AdapterRef
    snapshot: Snapshot
    live: list[Note]
    notes: list[str]  # what the teacher sees: those of `live` that show by themselves
    is_rebuild: bool = False
    num_facts: int = 0  # questions about facts that its candidate is taught
    is_misled: bool = False  # a candidate was, by the facts that it had learned
    num_weak: int = 0  # weak signals that train something
    approved: list[Gold] | None = None  # that the parent still gives; looked at before the first candidate
    trained: Trained = field(default_factory=Trained)

    @property
    def start(self) -> AdapterRef:
        """The version that the training begins from."""
        return ZERO_ADAPTER if self.is_rebuild else self.parent

    @property
    def view(self) -> View:
        """The notes that its student and its teacher see."""
        return View(self.start, self.live, self.notes)

    def outcome(
        self, status: Status, version: int, reason: str, verdict: Verdict | None = None
    ) -> ConsolidationOutcome:
        """Return the outcome; `version` is active now."""
        material = self.snapshot.material
        return ConsolidationOutcome(
            status,
            version,
            reason,
            num_new=material.num_new,
            num_rehearsed=len(material.earlier),
            num_weak=self.num_weak,
            num_better=len(material.better_ids),
            steps=self.trained.steps,
            duration_ms=self.duration_ms,
            gate=verdict.to_dict() if verdict else {},
            update_id=self.run.id,
            is_rebuild=self.is_rebuild,
        )


class Consolidator:
    """Runs consolidations. The scheduler ensures that nothing else trains meanwhile."""

    def __init__(self, context: LearningContext, candidates: Candidates, facts: Facts) -> None:
        self._config = context.config
        self._database = context.database
        self._host = context.host
        self._active = context.active
        self._candidates = candidates
        self._facts = facts
        self._rehearsals = Rehearsals(context, facts)
        self._approved = ApprovedAnswers(context)
        self._better_answers = BetterAnswers(context)
        self._rebuild_check = RebuildCheck(context)

    async def consolidate(self, user_id: str) -> ConsolidationOutcome:
        """Train on what is new about a person. Raises EngineRestarting or TrainerError if it cannot finish."""
        snapshot = await self._read(user_id)
        active = snapshot.user.active_version
        if not snapshot.user.is_learning:
            return ConsolidationOutcome("kept", active, LEARNING_IS_OFF)
        if await self._better_answers.cycle(snapshot.graded, snapshot.newest_better_s):
            snapshot = await self._read(user_id)
        if not snapshot.material.is_anything_new:
            return ConsolidationOutcome("kept", active, _NOTHING)
        consolidation = await self._begin(user_id, snapshot, signals.CONSOLIDATION)
        async with self._failures_recorded(consolidation):
            consolidation.is_rebuild = await self._rebuild_check.has_drifted(consolidation.parent)
            return await self._run(consolidation)

    async def rebuild(self, user_id: str) -> ConsolidationOutcome:
        """Make the adapter again from zero, from the standing notes, the replay and the new signals.

        Raises EngineRestarting or TrainerError if it cannot finish.
        """
        consolidation = await self._begin(user_id, await self._read(user_id), REBUILD)
        consolidation.is_rebuild = True
        async with self._failures_recorded(consolidation):
            return await self._run(consolidation)

    async def _read(self, user_id: str) -> Snapshot:
        return await self._database.read(lambda s: snapshots.take(s, user_id, self._config))

    async def _begin(self, user_id: str, snapshot: Snapshot, kind: str) -> _Consolidation:
        examined = await self._facts.examine(snapshot.notes, snapshot.facts)
        parent = await self._active.served(user_id, snapshot.version) or await self._active.active(user_id)

        def begin(s: Session) -> _Consolidation:
            examined.keep(s)
            live = note_rows.live(s, user_id)
            said = notes.said(notes.showing(live), self._config.note, self._host.max_model_len)
            run = UpdateRun(user_id=user_id, kind=kind, parent_version=parent.number, notes=said)
            return _Consolidation(updates.start(s, run), parent, snapshot, live, said)

        writing = asyncio.ensure_future(self._database.write(begin))
        try:
            return await asyncio.shield(writing)
        except asyncio.CancelledError:  # the row may be stored already: it must not say "running" for ever
            async with self._failures_recorded(await writing):
                raise

    async def _run(self, consolidation: _Consolidation) -> ConsolidationOutcome:
        snapshot = consolidation.snapshot
        weak = await self._rehearsals.weighed(snapshot.material.weak, consolidation.notes)
        consolidation.num_weak = len(weak)
        made = await self._rehearsals.samples(snapshot, consolidation.view, weak)
        consolidation.lap("samples")
        consolidation.num_facts = len(facts.questions_in_turn(consolidation.live, self._config.fact.max_questions))
        outcome = await self._try(consolidation, made.all)
        if _is_misled(consolidation, outcome):  # the facts stay notes, which wait for their question
            consolidation.num_facts, consolidation.is_misled, consolidation.trained = 0, True, Trained()
            fewer = self._rehearsals.without_facts(made, consolidation.view)
            outcome = await self._try(consolidation, fewer.all)
        if outcome.status == "rejected":
            await self._database.write(lambda s: _record(s, consolidation, outcome))
        return outcome

    async def _try(self, consolidation: _Consolidation, samples: list[Sample]) -> ConsolidationOutcome:
        """Train and gate; try a refused candidate once more, gently, unless its facts are at fault."""
        if not any(sample.kind == "counterfactual" for sample in samples):
            return await self._keep(consolidation)
        if consolidation.approved is None:
            approved = consolidation.snapshot.approved
            consolidation.approved = await self._approved.held(approved, consolidation.live, consolidation.parent)
            consolidation.lap("gold")
        steps = material.steps_of(len(samples), consolidation.num_facts, self._config)
        learn = replace(self._config.learn.merged(consolidation.snapshot.user.lora_shape), steps=steps)
        outcome = await self._candidate(consolidation, samples, learn)
        if outcome.status == "rejected" and not _is_misled(consolidation, outcome):
            outcome = await self._candidate(consolidation, samples, learn.gentler())
        return outcome

    async def _candidate(
        self, consolidation: _Consolidation, samples: list[Sample], learn: LearnConfig
    ) -> ConsolidationOutcome:
        run, start = consolidation.run, consolidation.start
        trained = await self._candidates.train(run.id, start, samples, learn)
        consolidation.trained = trained.without(_AGAINST_ZERO) if consolidation.is_rebuild else trained
        consolidation.lap("train")
        if trained.divergence_before < self._config.sleep.min_divergence:
            await self._candidates.close(run.id)
            return await self._keep(consolidation)
        verdict, version = await self._candidates.activate(
            run,
            start.number,
            consolidation.trained,
            consolidation.lap,
            Acceptance(
                examine=lambda ref, so_far: self._examined(consolidation, ref, so_far),
                also=lambda s, v, made: _record(
                    s, consolidation, consolidation.outcome("learned", made.number, "", v), made.number
                ),
            ),
        )
        if not verdict.is_accepted:
            return consolidation.outcome("rejected", consolidation.parent.number, verdict.reason, verdict)
        return consolidation.outcome("learned", version.number, "", verdict)

    async def _examined(self, consolidation: _Consolidation, ref: AdapterRef, verdict: Verdict) -> Verdict:
        """Hold a candidate made from zero against the old one, and each against approved answers and untold facts."""
        if consolidation.is_rebuild:
            verdict = await self._rebuild_check.compared(
                consolidation.snapshot.regression, consolidation.notes, consolidation.parent, ref, verdict
            )
        if verdict.is_accepted:
            verdict = await self._approved.judged(consolidation.approved or (), ref, verdict)
        if not verdict.is_accepted:
            return verdict
        made_up = await self._facts.made_up(ref, consolidation.live)
        is_honest = made_up is None or made_up <= self._config.fact.max_made_up
        verdict = verdict.and_checks({_MADE_UP: is_honest}, _REASONS, {_MADE_UP: made_up})
        if not (verdict.is_accepted and consolidation.num_facts):
            return verdict
        told = await self._facts.told(ref, consolidation.live, consolidation.notes)
        is_telling = told is None or told >= self._config.fact.min_told
        return verdict.and_checks({_TOLD: is_telling}, _REASONS, {_TOLD: told})

    async def _keep(self, consolidation: _Consolidation) -> ConsolidationOutcome:
        """Mark the new signals as taken in although nothing is trained, or every night would look at them again.

        A rebuild that trains nothing returns the person to the base model.
        """
        nothing = _NOTHING_STANDS if consolidation.is_rebuild else _AGREED
        reason = _STAY_NOTES if consolidation.is_misled else nothing
        outcome = consolidation.outcome("kept", consolidation.start.number, reason)
        await self._database.write(lambda s: _record_kept(s, consolidation, outcome))
        return outcome

    def _failures_recorded(self, consolidation: _Consolidation) -> AbstractAsyncContextManager[None]:
        """Record one that has to give way as postponed, and one that cannot finish as failed."""
        record = partial(_record_failure, consolidation)
        return update_log.failures_recorded(self._database, record, cancelled_as=update_log.POSTPONED)


def _is_misled(consolidation: _Consolidation, outcome: ConsolidationOutcome) -> bool:
    """Return True if a candidate that was taught facts answers what was never told, or no longer what was."""
    checks = outcome.gate.get("checks", {})
    is_right = checks.get(_MADE_UP, True) and checks.get(_TOLD, True)
    return consolidation.num_facts > 0 and outcome.status == "rejected" and not is_right


def _record(
    s: Session, consolidation: _Consolidation, outcome: ConsolidationOutcome, version: int | None = None
) -> None:
    """Record how it ended, and mark the new signals as taken in unless it was refused."""
    update_log.finish(
        s,
        consolidation.run.id,
        outcome.status,
        consolidation.trained,
        duration_ms=outcome.duration_ms,
        phases_ms=dict(consolidation.phases_ms),
        gate=outcome.gate or None,
        version=version,
        error=outcome.reason,
    )
    if outcome.status == "rejected":
        return
    material, user_id = consolidation.snapshot.material, consolidation.run.user_id
    signals.take_in(s, user_id, consolidation.run.id, material.feedback_ids, material.completion_ids)
    better_answers.take_in(s, user_id, consolidation.run.id, material.better_ids)
    for completion_id in material.kept_ids:
        with suppress(CompletionNotFound):  # deleted meanwhile
            completions.mark_gold(s, user_id, completion_id)


def _record_kept(s: Session, consolidation: _Consolidation, outcome: ConsolidationOutcome) -> None:
    if consolidation.is_rebuild:
        undo.return_to_base(s, consolidation.run.user_id)
    _record(s, consolidation, outcome)


def _record_failure(consolidation: _Consolidation, s: Session, status: str, reason: str) -> None:
    update_log.fail(s, consolidation.run, status, reason, consolidation.duration_ms)
