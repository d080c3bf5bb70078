"""One update: from feedback to what was learned.

Owns the sequence rollouts -> note -> training -> gate -> active version and its record in storage; the training and
the files are `engine.learning.candidates`'. Invariants: feedback is in storage before and after whatever happens here;
what makes a version active also says that its feedback is learned, in one transaction, so that nothing is trained
twice; a note is in the prompt from before its update runs until a probe shows that the weights hold it.
"""

import asyncio
import math
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from itertools import cycle, islice
from typing import Literal

from engine.adapter_ref import ZERO_ADAPTER, AdapterRef
from engine.config import LearnConfig
from engine.gates.candidate import Verdict
from engine.host.trainer_client import SampleScore
from engine.learning.candidates import Candidates, Trained
from engine.learning.timer import PhaseTimer
from engine.prompts.hindsight import Hindsight, teacher_messages
from engine.requests import LearnOutcome
from engine.sample import Sample
from engine.samples import lessons, notes, regression
from engine.samples.context import LearningContext
from engine.samples.facts import Facts
from engine.samples.lessons import Lesson
from engine.samples.rollouts import Rollout
from storage.conversations import completions
from storage.database import Session
from storage.learning import feedback, updates, versions
from storage.learning import notes as note_rows
from storage.people import people
from storage.tables import Completion, Feedback, FeedbackStatus, Note, NoteState, UpdateRun, VersionState

_RECENT = 16  # completions looked at for a person's own prompts
_NOTHING = "this did not tell me what to change"
_SAME_UPDATE = {"user_id", "feedback_id", "kind", "parent_version", "notes"}

Status = Literal["learned", "kept", "rejected"]


@dataclass
class _Update(PhaseTimer):
    """What one update knows while it runs."""

    run: UpdateRun
    parent: AdapterRef
    learn: LearnConfig
    notes: list[str]  # what the teacher sees besides the new feedback
    facts: list[Note]  # that the weights hold
    note: Note | None = None  # what the feedback became
    is_last_try: bool = False  # a refused candidate is tried once more, with gentler settings
    trained: Trained = field(default_factory=Trained)
    heat: list[tuple[str, float]] = field(default_factory=list)  # (token text, log p_teacher - log p_student)

    def outcome(self, status: Status, version: int, reason: str = "", verdict: Verdict | None = None) -> LearnOutcome:
        """How it ended; `version` is active now."""
        return LearnOutcome(
            feedback_id=self.run.feedback_id or "",
            status=status,
            adapter_version=version,
            note=self.note.text if self.note else None,
            note_id=self.note.id if self.note else None,
            reason=reason,
            steps=self.trained.steps,
            divergence_before=_number(self.trained.divergence_before),
            divergence_after=_number(self.trained.divergence_after),
            duration_ms=self.duration_ms,
            phases_ms=self.phases_ms,
            gate=verdict.to_dict() if verdict else {},
            heat=self.heat,
            curves=self.trained.curves,
            update_id=self.run.id,
        )


class Learner:
    """Runs updates, one at a time; the scheduler sees to that."""

    def __init__(self, context: LearningContext, candidates: Candidates, facts: Facts) -> None:
        """`candidates` trains and publishes, `facts` makes the samples of facts."""
        self._config = context.config
        self._database = context.database
        self._host = context.host
        self._trainer = context.trainer
        self._prompts = context.prompts
        self._rollouts = context.rollouts
        self._active = context.active
        self._candidates = candidates
        self._facts = facts

    # -- one lesson --------------------------------------------------------------------------------------------------

    async def learn(self, feedback_id: str) -> LearnOutcome:
        """Trains on one correction or ideal. Raises EngineRestarting or TrainerError when the update cannot finish."""
        row = await self._database.write(lambda s: feedback.begin_training(s, feedback_id))
        lesson = await self._lesson(row)
        update = await self._begin(row, lesson)
        async with self._closed_on_failure(update):
            return await self._teach(lesson, update)

    async def _teach(self, lesson: Lesson, update: _Update) -> LearnOutcome:
        others = await self._counterfactuals(lesson, update)
        update.lap("rollouts")
        if await self._is_standing(lesson, update, others):
            await self._take_note(lesson, update)
        update.lap("standing")
        shown = await self._teacher_rollouts(update, [lesson.corrected, *others], lesson.hindsight)
        update.lap("teacher rollouts")
        taught = lessons.samples(lesson, update.notes, others, self._prompts)
        watched = await self._watched(lesson, update)
        rehearsed = await self._rehearsed(update)
        samples = await self._with_anchors(update, [*taught, *rehearsed, *shown, *watched])
        await self._train(update, samples)
        if update.trained.divergence_before < self._config.learn.min_divergence:
            await self._candidates.close(update.run.id)
            return await self._end(update.outcome("kept", update.parent.number, _NOTHING))
        return await self._activate(update, samples)

    async def _rehearsed(self, update: _Update) -> list[Sample]:
        """Facts that the weights hold, asked for once more: a lesson fades what no teacher speaks of.

        The steps grow with the samples, so that the lesson itself is gone through as often as without.
        """
        limit = self._config.fact.num_rehearsed
        samples = await self._facts.samples(update.parent, update.facts, update.notes, limit)
        update.lap("facts")
        share = len(samples) / (update.learn.num_counterfactuals + update.learn.num_teacher_rollouts + 1)
        update.learn = replace(update.learn, steps=round(update.learn.steps * (1 + share)))
        return [sample for sample in samples if sample.response_ids]

    async def _watched(self, lesson: Lesson, update: _Update) -> list[Sample]:
        """What the gates look at and nothing is trained on."""
        found = await self._database.read(
            lambda s: regression.find(s, lesson.user_id, self._config.gate, without=lesson.completion.id)
        )
        return regression.regression_samples(found, update.notes, lesson.hindsight, self._prompts)

    async def _teacher_rollouts(
        self, update: _Update, rollouts: Sequence[Rollout], hindsight: Hindsight
    ) -> list[Sample]:
        """The same prompts and some of the bank, answered by the teacher: where the student is about to go."""
        asked = self._rollouts.with_topics([r.messages for r in rollouts], update.learn.num_teacher_rollouts)
        seen = [teacher_messages(messages, update.notes, hindsight) for messages in asked]
        ref = ZERO_ADAPTER if update.learn.is_teacher_bare else update.parent
        responses = await self._rollouts.by_teacher(ref, seen)
        pairs = zip(asked, seen, responses, strict=True)
        return [lessons.teacher_sample(*pair, self._prompts) for pair in pairs if pair[2]]

    async def _lesson(self, row: Feedback) -> Lesson:
        if row.completion_id is None:
            raise ValueError(f"feedback {row.id} points at no answer")
        completion_id = row.completion_id
        return Lesson.of(row, await self._database.read(lambda s: completions.get(s, row.user_id, completion_id)))

    async def _begin(self, row: Feedback, lesson: Lesson) -> _Update:
        live = await self._database.read(lambda s: note_rows.live(s, row.user_id))
        parent = await self._active.active(row.user_id)
        user = await self._database.read(lambda s: people.get(s, row.user_id))
        learn = self._config.learn.merged((user.lora_shape or {}) | (row.training or {}))
        shown = self._said([n for n in live if n.feedback_id != lesson.feedback_id]) if learn.reads_notes else []
        run = UpdateRun(
            user_id=row.user_id, feedback_id=row.id, kind=row.kind, parent_version=parent.number, notes=shown
        )
        update = _Update(
            run=await self._database.write(lambda s: updates.start(s, run)),
            parent=parent,
            learn=learn,
            notes=shown,
            facts=[n for n in live if n.questions and n.state == NoteState.IN_WEIGHTS],
        )
        update.note = next((n for n in live if n.feedback_id == lesson.feedback_id), None)  # of an earlier attempt
        return update

    def _said(self, live: Sequence[Note]) -> list[str]:
        return notes.said(notes.showing(live), self._config.note, self._host.max_model_len)

    async def _counterfactuals(self, lesson: Lesson, update: _Update) -> list[Rollout]:
        recent = await self._recent(lesson.user_id)
        others = [c for c in recent if c.messages != lesson.completion.messages]
        return await self._rollouts.take(update.parent, others, update.learn.num_counterfactuals)

    async def _recent(self, user_id: str) -> list[Completion]:
        return await self._database.read(lambda s: completions.recent(s, user_id, _RECENT))

    async def _is_standing(self, lesson: Lesson, update: _Update, others: Sequence[Rollout]) -> bool:
        """Whether the feedback alone moves the teacher on other prompts too, not on the corrected one only."""
        pairs = lessons.moves(lesson, update.notes, others, self._prompts)
        moved = [score.divergence for score in await self._scores(pairs)]
        return is_standing(moved, self._config.note.standing_share, self._config.learn.min_divergence)

    async def _scores(self, pairs: Sequence[Sample]) -> list[SampleScore]:
        """Scores under the base model: in one call, or one by one while somebody is reading a stream."""
        size = 1 if self._host.num_running else len(pairs)
        return await self._trainer.score(pairs, ZERO_ADAPTER, size)

    async def _take_note(self, lesson: Lesson, update: _Update) -> None:
        if update.note is not None:
            return
        text = " ".join(lesson.note_text.split())
        note = Note(
            user_id=lesson.user_id,
            feedback_id=lesson.feedback_id,
            text=text,
            state=NoteState.LEARNING,
            num_tokens=self._prompts.count(f"- {text}\n"),
        )
        update.note = await self._database.write(lambda s: note_rows.add(s, note))

    # -- the end of every update ---------------------------------------------------------------------------------------

    @asynccontextmanager
    async def _closed_on_failure(self, update: _Update) -> AsyncIterator[None]:
        """An update that cannot finish leaves a row that says so, no candidate, and its note in the prompt."""
        try:
            yield
        except (Exception, asyncio.CancelledError) as error:
            reason = str(error) or type(error).__name__
            await self._database.write(lambda s: _record_failure(s, update, reason))
            raise

    async def _with_anchors(self, update: _Update, taught: list[Sample]) -> list[Sample]:
        anchors = await self._rollouts.anchors(ZERO_ADAPTER, update.learn.num_anchors)
        return [*taught, *lessons.anchor_samples(anchors)]

    async def _train(self, update: _Update, samples: list[Sample]) -> None:
        trained = await self._candidates.train(update.run.id, update.parent, samples, update.learn)
        update.lap("train")
        update.trained = trained
        update.heat = [(self._prompts.token_text(int(t)), round(_number(h) or 0.0, 3)) for t, h in trained.heat]

    async def _activate(self, update: _Update, samples: list[Sample]) -> LearnOutcome:
        parent = update.parent.number
        verdict, version = await self._candidates.activate(
            update.run,
            parent,
            update.trained,
            update.lap,
            also=lambda s, v, made: _record(s, update.outcome("learned", made.number, verdict=v), made.number),
        )
        if verdict.is_accepted:
            if parent:
                self._rollouts.drop(update.parent.name)
            return update.outcome("learned", version.number, verdict=verdict)
        if update.is_last_try:
            return await self._end(update.outcome("rejected", parent, _refused(update, verdict), verdict))
        await self._try_gently(update, verdict)
        await self._train(update, samples)
        return await self._activate(update, samples)

    async def _try_gently(self, update: _Update, verdict: Verdict) -> None:
        """Ends the refused try in the log, and makes the update one with half the learning rate."""
        refused, again = update.run, UpdateRun(**update.run.model_dump(include=_SAME_UPDATE))

        def begin(s: Session) -> UpdateRun:
            updates.finish(
                s,
                refused.id,
                status="rejected",
                duration_ms=update.duration_ms,
                phases_ms=dict(update.phases_ms),
                steps=update.trained.steps,
                divergence_before=update.trained.divergence_before,
                divergence_after=update.trained.divergence_after,
                gate=verdict.to_dict(),
                curves=update.trained.curves or None,
                error=verdict.reason,
            )
            return updates.start(s, again)

        update.run = await self._database.write(begin)
        update.learn = update.learn.gentler()
        update.is_last_try = True

    async def _end(self, outcome: LearnOutcome) -> LearnOutcome:
        await self._database.write(lambda s: _record(s, outcome))
        return outcome

    # -- after a lesson ----------------------------------------------------------------------------------------------

    async def warm_up(self, rollouts: Sequence[Rollout]) -> None:
        """One step of an update that is thrown away: the first real one should not pay for what is made only once."""
        samples = [replace(sample, kind="correction") for sample in lessons.anchor_samples(rollouts)]
        await self._candidates.train("warm-up", ZERO_ADAPTER, samples, self._config.learn.merged({"steps": 1}))
        await self._candidates.close("warm-up")

    async def settle(self, user_id: str) -> None:
        """Prepares the next update's rollouts and probes where each note lives. May be cancelled at any time."""
        ref = await self._active.active(user_id)
        fresh = await self._rollouts.prepare(ref, await self._recent(user_id), self._config.note.probe_rollouts)
        everything = await self._database.read(lambda s: note_rows.live(s, user_id))
        if ref.number:
            live = notes.fitting(notes.showing(everything), self._config.note, self._host.max_model_len)
            await self._probe_showing(live, fresh, ref)
            for fact in (note for note in everything if note.questions):
                await self._probe_fact(fact, live, ref)

    async def _probe_showing(self, live: Sequence[Note], fresh: Sequence[Rollout], ref: AdapterRef) -> None:
        """Notes that show by themselves; those that fail on a few answers are looked at on more of them."""
        first = fresh[: self._config.note.probe_rollouts]
        failed = [note for note in live if not await self._probe(note, live, first, ref, is_last=False)]
        if failed:
            longest = self._config.note.long_probe_rollouts
            more = await self._rollouts.prepare(ref, await self._recent(failed[0].user_id), longest)
            for note in failed:
                await self._probe(note, live, more[:longest], ref, is_last=True)

    async def _probe_fact(self, fact: Note, live: Sequence[Note], ref: AdapterRef) -> None:
        """The same for a fact, on answers to every one of its own questions."""
        for count, is_last in (
            (self._config.note.probe_rollouts, False),
            (self._config.note.long_probe_rollouts, True),
        ):
            questions = fact.questions or []
            asked = await self._rollouts.asked(ref, list(islice(cycle(questions), max(count, len(questions)))))
            if await self._probe(fact, [*live, fact], asked, ref, is_last=is_last):
                return

    async def _probe(
        self, note: Note, live: Sequence[Note], rollouts: Sequence[Rollout], ref: AdapterRef, *, is_last: bool
    ) -> bool:
        """Moves a note to where it belongs; returns False where it failed and is to be looked at once more."""
        scores = [await self._scores(notes.probe_samples(note, live, rollout, self._prompts)) for rollout in rollouts]
        if not scores:
            return True
        probe = notes.probe_of(scores)
        state = notes.next_state(note, probe, self._config.note, is_newest=note.id == live[-1].id)
        share = notes.held_share(probe, self._config.note)
        if state == NoteState.IN_PROMPT and share is not None and not is_last:
            return False
        learned = ref.number if state == NoteState.IN_WEIGHTS else None
        await self._database.write(lambda s: _move(s, note, state, probe=share, learned_version=learned))
        return True


def _refused(update: _Update, verdict: Verdict) -> str:
    """Why nothing was learned, in the person's words."""
    kept = " It stays as a note in the prompt." if update.note else ""
    return f"{verdict.reason} A gentler second try did no better.{kept}"


def _number(value: float) -> float | None:
    """What was measured; None where a broken update measured no number, which JSON has no word for."""
    return value if math.isfinite(value) else None


_ROW_STATUS = {"learned": "accepted", "kept": "skipped", "rejected": "rejected"}
_FEEDBACK_STATUS = {
    "learned": FeedbackStatus.LEARNED,
    "kept": FeedbackStatus.KEPT,
    "rejected": FeedbackStatus.REJECTED,
}


def _record(s: Session, outcome: LearnOutcome, version: int | None = None) -> None:
    """How the update ended, for its row, its feedback and its note, in one transaction."""
    assert outcome.update_id is not None
    updates.finish(
        s,
        outcome.update_id,
        status=_ROW_STATUS[outcome.status],
        duration_ms=outcome.duration_ms,
        phases_ms=outcome.phases_ms,
        steps=outcome.steps,
        divergence_before=outcome.divergence_before,
        divergence_after=outcome.divergence_after,
        gate=outcome.gate or None,
        heat=outcome.heat,
        curves=outcome.curves or None,
        version=version,
        error=outcome.reason,
    )
    feedback.set_status(s, outcome.feedback_id, _FEEDBACK_STATUS[outcome.status], outcome.reason)
    if outcome.note_id is not None and outcome.status != "learned":
        note_rows.set_state(s, outcome.note_id, NoteState.IN_PROMPT)


def _record_failure(s: Session, update: _Update, reason: str) -> None:
    if updates.get(s, update.run.user_id, update.run.id).status != "running":
        return  # it was cancelled while its last transaction was under way, and that went through
    updates.finish(s, update.run.id, status="failed", duration_ms=update.duration_ms, error=reason)
    for version in versions.history(s, update.run.user_id):
        if version.update_id == update.run.id and version.state == VersionState.CANDIDATE:
            versions.reject(s, version.user_id, version.number)
    if update.note is not None:
        note_rows.set_state(s, update.note.id, NoteState.IN_PROMPT)


def _move(s: Session, note: Note, state: NoteState, *, probe: float | None, learned_version: int | None) -> None:
    """Moves a probed note, unless it was taken back while it was probed."""
    if note_rows.get(s, note.user_id, note.id).state in note_rows.LIVE:
        note_rows.set_state(s, note.id, state, probe=probe, learned_version=learned_version)


def is_standing(moved: Sequence[float], share: float, floor: float) -> bool:
    """Whether feedback is about more than one answer: it moves the teacher on other prompts by at least `share` of
    what it moves on the corrected one, and by more than `floor` nats per token."""
    first, *others = moved
    if not others:
        return first > floor
    return sum(others) / len(others) >= max(share * first, floor)
