"""One lesson: an update from one piece of feedback to an active version, or to a reason against it.

Owns the sequence rollouts -> note -> training -> gate -> active version and its record in storage; the training and
the files are `engine.learning.candidates`'. Invariants: feedback stays in storage if an update fails or is cancelled;
one transaction makes a version active and marks its feedback as learned, so that nothing is trained twice; a note is
in the prompt from before its update runs until a probe shows that the weights hold it.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from engine.adapter_ref import ZERO_ADAPTER, AdapterRef
from engine.adapters import superseding
from engine.config import LearnConfig
from engine.config.learning import MAX_STEPS
from engine.gates.candidate import Verdict
from engine.host.trainer_client import Trained, finite_or_none
from engine.learning import bystanders, endings, update_log
from engine.learning.bystanders import Bystanders
from engine.learning.candidates import Candidates
from engine.learning.intent import NUM_OTHERS, REASONS, Intent, IntentReader
from engine.learning.progress import ProgressEstimate
from engine.learning.update_log import PhaseTimer, Status
from engine.prompts.builder import PromptBuilder
from engine.prompts.hindsight import Hindsight, teacher_messages
from engine.prompts.tool_messages import carried
from engine.requests import ChatMessage, LearnOutcome
from engine.sample import Sample
from engine.samples import lessons, notes, regression
from engine.samples.context import LearningContext
from engine.samples.demonstrations import Demonstrations
from engine.samples.facts import Facts
from engine.samples.lessons import Lesson
from engine.samples.rollouts import RECENT_ANSWERS, Rollout, conversation, of_kind
from storage.conversations import completions
from storage.database import Session
from storage.kinds import Meaning, NoteState
from storage.learning import feedback, updates
from storage.learning import notes as note_rows
from storage.people import people
from storage.tables import Completion, Feedback, Note, UpdateRun

_NOTHING = "My answers follow this already. If something is still missing, say what should be different."
_TOO_LONG = "This is longer than I can learn from at once. Say it in fewer words."
_SAME_UPDATE = {"user_id", "feedback_id", "kind", "parent_version", "notes"}


@dataclass
class _Update(PhaseTimer):
    """The state of one update while it runs."""

    run: UpdateRun
    parent: AdapterRef
    learn: LearnConfig
    notes: list[str]  # that the teacher sees besides the new feedback
    facts: list[Note]  # that the weights hold
    note: Note | None = None  # that the feedback became
    replaced: list[str] = field(default_factory=list)  # the notes whose place it has taken
    recent: list[Completion] = field(default_factory=list)  # answers to the person, in chats or at work as the lesson's
    intent: Intent = field(default_factory=lambda: Intent(Meaning.WISH, was_read=False))
    bystanders: Bystanders | None = None  # of a remark, which must not change their answers
    is_last_try: bool = False  # a refused candidate is trained once more, with gentler settings
    trained: Trained = field(default_factory=Trained)
    heat: list[tuple[str, float]] = field(default_factory=list)  # (token text, log p_teacher - log p_student)

    @property
    def read(self) -> list[str]:
        """The notes that the teacher reads: those of earlier lessons and, unless switched off, this one's own."""
        if self.note is None or not self.learn.reads_own_note:
            return self.notes
        return [*self.notes, self.note.text]

    def as_read(self, lesson: Lesson) -> Lesson:
        """Return the lesson as the teacher reads it beside the notes: a correction need not be said twice."""
        return lesson if self.note is None or self.learn.reads_hindsight else lesson.without_feedback()

    def outcome(self, status: Status, version: int, reason: str = "", verdict: Verdict | None = None) -> LearnOutcome:
        """Return how the update ended; `version` is active now."""
        return LearnOutcome(
            feedback_id=self.run.feedback_id or "",
            status=status,
            adapter_version=version,
            note=self.note.text if self.note else None,
            note_id=self.note.id if self.note else None,
            replaced=self.replaced,
            reason=reason,
            steps=self.trained.steps,
            divergence_before=finite_or_none(self.trained.divergence_before),
            divergence_after=finite_or_none(self.trained.divergence_after),
            duration_ms=self.duration_ms,
            phases_ms=self.phases_ms,
            gate=verdict.to_dict() if verdict else {},
            heat=self.heat,
            curves=self.trained.curves,
            update_id=self.run.id,
            reading=self.intent.meaning if self.intent.was_read else "",
            is_unsure=self.intent.is_unsure,
        )


class Learner:
    """Runs updates from feedback. The scheduler runs one at a time."""

    def __init__(self, context: LearningContext, candidates: Candidates, facts: Facts) -> None:
        self._config = context.config
        self._database = context.database
        self._host = context.host
        self._trainer = context.trainer
        self._prompts = context.prompts
        self._rollouts = context.rollouts
        self._active = context.active
        self._candidates = candidates
        self._facts = facts
        self._intents = IntentReader(context)
        self.progress = ProgressEstimate(lambda: self._trainer.trained_share)

    # -- one lesson --------------------------------------------------------------------------------------------------

    async def learn(self, feedback_id: str) -> LearnOutcome:
        """Train on one correction or ideal. Raise EngineRestarting or TrainerError if the update cannot finish."""
        self.progress.begin(feedback_id)
        if (ended := await self._ended(feedback_id)) is not None:
            return ended
        row = await self._database.write(lambda s: feedback.begin_training(s, feedback_id))
        answer = await self._answer(row)
        learn = await self._settings(row, answer)
        lesson = await self._lesson(row, answer, learn)
        update = await self._begin(row, lesson, learn)
        record = partial(_record_failure, update)
        async with update_log.failures_recorded(self._database, record):
            outcome = await self._teach(lesson, update)
        return replace(outcome, is_calibrated=self._config.is_calibrated)

    async def _ended(self, feedback_id: str) -> LearnOutcome | None:
        """Return how feedback has ended while it waited, None if its lesson is to begin."""
        row = await self._database.read(lambda s: feedback.get(s, feedback_id))
        user = await self._database.read(lambda s: people.get(s, row.user_id))
        if row.status not in endings.OPEN:
            return endings.of_row(row, user.active_version)
        if user.is_learning:
            return None
        return await endings.keep(self._database, row, user.active_version, endings.LEARNING_IS_OFF)

    async def _teach(self, lesson: Lesson, update: _Update) -> LearnOutcome:
        update.intent = await self._intents.read(lesson, update.parent, update.notes, update.recent)
        update.lap("reading")
        if not update.intent.is_taught:
            return await self._keep(lesson, update)
        if not update.intent.reaches_others:
            return await self._teach_alone(lesson.in_own_words(), update)
        others = await self._counterfactuals(lesson, update)
        update.lap("rollouts")
        if update.intent.has_note:
            await self._take_note(lesson, update)
        lesson = update.as_read(lesson)
        teacher = self._demonstrations(lesson, update, lesson.general)
        given = [*(r.messages for r in (lesson.corrected, *others)), *await self._work(lesson, update.intent)]
        whole, begun = await asyncio.gather(teacher.whole(given), teacher.openings())
        update.lap("teacher rollouts")
        taught = lessons.samples(lesson, update.read, others, self._prompts_of(update))
        held_out = await self._held_out(lesson, update)
        others_held = await teacher.chats(update.parent)
        num_samples = len(taught) + len(whole) + len(begun) + len(others_held) + update.learn.num_anchors
        rehearsed = [*await self._rehearsed(update, num_samples), *others_held]
        return await self._finish(lesson, update, [*taught, *rehearsed, *whole, *begun, *held_out])

    async def _teach_alone(self, lesson: Lesson, update: _Update) -> LearnOutcome:
        """Teach a remark: on its own prompt, while other prompts are held to what this version answers."""
        others = await self._rollouts.take(update.parent, [], NUM_OTHERS, without=lesson.corrected.messages)
        update.lap("rollouts")
        shown = await self._demonstrations(lesson, update, lesson.hindsight).to([lesson.corrected.messages])
        update.lap("teacher rollouts")
        prompts = self._prompts_of(update)
        if update.intent.spares_others:
            update.bystanders = Bystanders.of(self._rollouts, update.parent, lesson.corrected.messages, update.learn)
        taught = [*lessons.samples(lesson, update.notes, [], prompts), *lessons.steady_samples(others, prompts)]
        held_out = await self._held_out(lesson, update)
        return await self._finish(lesson, update, [*taught, *shown, *held_out])

    async def _keep(self, lesson: Lesson, update: _Update) -> LearnOutcome:
        """Train nothing: a fact becomes a note, thanks approve the answer."""
        meaning = update.intent.meaning
        if meaning == Meaning.FACT:
            await self._take_note(lesson.in_own_words(), update)
        elif meaning == Meaning.THANKS:
            row = lesson.completion
            await self._database.write(lambda s: completions.mark_gold(s, row.user_id, row.id))
        return await self._end(update, update.outcome("kept", update.parent.number, REASONS[meaning]))

    async def _finish(self, lesson: Lesson, update: _Update, taught: list[Sample]) -> LearnOutcome:
        """Train on the samples and make the result active, unless there was nothing to learn."""
        if not any(sample.is_taught for sample in taught):
            seen = teacher_messages(lesson.corrected.messages, update.read, lesson.hindsight)
            reason = self._prompts.refusal(seen) or _TOO_LONG
            return await self._end(update, update.outcome("kept", update.parent.number, reason))
        samples = await self._with_anchors(update, taught)
        await self._train(update, samples)
        if update.trained.divergence_before < update.learn.min_divergence:
            await self._candidates.close(update.run.id)
            return await self._end(update, update.outcome("kept", update.parent.number, _NOTHING))
        return await self._activate(update, samples)

    async def _rehearsed(self, update: _Update, num_samples: int) -> list[Sample]:
        """Return questions for facts that the weights hold: a lesson fades everything that no teacher speaks of.

        The steps grow with the samples, so that the lesson's own are gone through as often as without.
        """
        limit = self._config.fact.num_rehearsed
        samples = await self._facts.samples(update.parent, update.facts, update.notes, limit)
        update.lap("facts")
        steps = round(update.learn.steps * (1 + len(samples) / num_samples))
        update.learn = replace(update.learn, steps=min(MAX_STEPS, steps))
        return [sample for sample in samples if sample.response_ids]

    async def _held_out(self, lesson: Lesson, update: _Update) -> list[Sample]:
        """Return the answers that the gates measure and nothing is trained on."""
        found = await self._database.read(
            lambda s: regression.find(s, lesson.user_id, self._config.gate, without=lesson.completion.id)
        )
        return regression.regression_samples(found, update.notes, lesson.general, self._prompts_of(update))

    def _demonstrations(self, lesson: Lesson, update: _Update, hindsight: Hindsight) -> Demonstrations:
        """Return the teacher of a lesson, which reads the notes and what was said of an answer."""
        return Demonstrations(
            self._rollouts,
            self._prompts_of(update),
            update.learn,
            ZERO_ADAPTER if update.learn.is_teacher_bare else update.parent,
            lambda messages: teacher_messages(messages, update.read, hindsight),
            update.recent,
            lesson.corrected.messages,
        )

    async def _answer(self, row: Feedback) -> Completion:
        if row.completion_id is None:
            raise ValueError(f"feedback {row.id} points at no answer")
        completion_id = row.completion_id
        return await self._database.read(lambda s: completions.get(s, row.user_id, completion_id))

    async def _settings(self, row: Feedback, answer: Completion) -> LearnConfig:
        """Return the settings of one lesson: for a chat or for work, with the person's shape and the request's own."""
        user = await self._database.read(lambda s: people.get(s, row.user_id))
        usual = self._config.learn.at_work() if carried(conversation(answer)) else self._config.learn
        return usual.merged((user.lora_shape or {}) | (row.training or {}))

    @staticmethod
    async def _lesson(row: Feedback, answer: Completion, learn: LearnConfig) -> Lesson:
        lesson = Lesson.of(row, answer).in_wording(learn.hindsight_wording)
        return lesson if learn.shows_rewrites else await asyncio.to_thread(lesson.told_by_form)

    async def _begin(self, row: Feedback, lesson: Lesson, learn: LearnConfig) -> _Update:
        live = await self._database.read(lambda s: note_rows.live(s, row.user_id))
        parent = await self._active.active(row.user_id)
        shown = self._read_besides(lesson, live, learn)
        run = UpdateRun(
            user_id=row.user_id, feedback_id=row.id, kind=row.kind, parent_version=parent.number, notes=shown
        )
        recent = await self._recent(lesson)
        update = _Update(
            run=await self._database.write(lambda s: updates.start(s, run)),
            parent=parent,
            learn=learn,
            notes=shown,
            facts=[n for n in live if n.questions and n.state == NoteState.IN_WEIGHTS],
            recent=recent,
            on_lap=self.progress.lap,
        )
        update.note = next((n for n in live if n.feedback_id == lesson.feedback_id), None)  # of an earlier attempt
        return update

    def _prompts_of(self, update: _Update) -> PromptBuilder:
        """Return prompts cut to what this update reads: a request may set less than the configuration."""
        return self._prompts.limited(update.learn.max_sequence_tokens)

    def _read_besides(self, lesson: Lesson, live: Sequence[Note], learn: LearnConfig) -> list[str]:
        """Return the words of the notes that the teacher reads besides the lesson's own."""
        others = [note for note in notes.showing(live) if note.feedback_id != lesson.feedback_id]
        return notes.said(others, self._config.note, self._host.max_model_len) if learn.reads_notes else []

    async def _counterfactuals(self, lesson: Lesson, update: _Update) -> list[Rollout]:
        count, asked = update.learn.num_counterfactuals, lesson.corrected.messages
        return await self._rollouts.take(update.parent, update.recent, count, without=asked)

    async def _work(self, lesson: Lesson, intent: Intent) -> list[list[ChatMessage]]:
        """Return tasks on which a wish shows, and what was read before the calls of earlier ones (ADR 41)."""
        if not carried(lesson.corrected.messages):
            return []
        found = await self._database.read(lambda s: regression.wished(s, lesson.user_id, without=lesson.feedback_id))
        return [*intent.shown, *(conversation(row) for row in of_kind(found, lesson.corrected.messages))]

    async def _recent(self, lesson: Lesson) -> list[Completion]:
        rows = await self._database.read(lambda s: completions.recent(s, lesson.user_id, RECENT_ANSWERS))
        return of_kind(rows, lesson.corrected.messages)

    async def _take_note(self, lesson: Lesson, update: _Update) -> None:
        """Store the lesson's note. The update goes on from less of its parent if that takes the place of a wish."""
        note = update.note or await self._add_note(lesson, update)
        replaced = await self._database.read(lambda s: superseding.replaced_by(s, note))
        update.replaced = [wish.text for wish in replaced]
        if replaced:
            update.learn = replace(update.learn, parent_share=update.learn.replacing_share)

    async def _add_note(self, lesson: Lesson, update: _Update) -> Note:
        note = Note(
            user_id=lesson.user_id,
            feedback_id=lesson.feedback_id,
            text=lesson.note_text,
            state=NoteState.LEARNING,
            num_tokens=notes.num_tokens(lesson.note_text, self._prompts.count),
        )

        def take(s: Session) -> tuple[Note, list[str]]:
            added = superseding.add(s, note)
            left = self._read_besides(lesson, note_rows.live(s, lesson.user_id), update.learn)
            updates.finish(s, update.run.id, notes=left)
            return added, left

        added, update.notes = await self._database.write(take)
        update.note, update.run.notes = added, update.notes
        return added

    # -- the end of every update ---------------------------------------------------------------------------------------

    async def _with_anchors(self, update: _Update, taught: list[Sample]) -> list[Sample]:
        anchors = await self._rollouts.anchors(ZERO_ADAPTER, update.learn.num_anchors)
        return [*taught, *lessons.anchor_samples(anchors)]

    async def _train(self, update: _Update, samples: list[Sample]) -> None:
        trained = await self._candidates.train(update.run.id, update.parent, samples, update.learn)
        update.lap("train")
        update.trained = trained
        update.heat = [(self._prompts.token_text(int(t)), round(finite_or_none(h) or 0.0, 3)) for t, h in trained.heat]

    async def _activate(self, update: _Update, samples: list[Sample]) -> LearnOutcome:
        parent = update.parent.number
        verdict, version = await self._candidates.activate(
            update.run,
            parent,
            update.trained,
            update.lap,
            examine=update.bystanders.examine if update.bystanders else None,
            also=lambda s, v, made: update_log.record(
                s, update.outcome("learned", made.number, verdict=v), update.trained, made.number
            ),
        )
        if verdict.is_accepted:
            if parent:
                self._rollouts.drop(update.parent.name)
            self.progress.end(update.phases_ms)
            return update.outcome("learned", version.number, verdict=verdict)
        if not verdict.checks.get(bystanders.CHECK, True):  # a gentler try would change others as well
            return await self._end(update, update.outcome("kept", parent, verdict.reason, verdict))
        if update.is_last_try:
            reason = endings.refused(verdict.reason, has_note=update.note is not None)
            return await self._end(update, update.outcome("rejected", parent, reason, verdict))
        await self._try_gently(update, verdict)
        await self._train(update, samples)
        return await self._activate(update, samples)

    async def _try_gently(self, update: _Update, verdict: Verdict) -> None:
        """Close the refused attempt in the log and prepare another one at half the learning rate."""
        refused, again = update.run, UpdateRun(**update.run.model_dump(include=_SAME_UPDATE))

        def begin(s: Session) -> UpdateRun:
            update_log.finish(
                s,
                refused.id,
                "rejected",
                update.trained,
                duration_ms=update.duration_ms,
                phases_ms=dict(update.phases_ms),
                gate=verdict.to_dict(),
                error=verdict.reason,
            )
            return updates.start(s, again)

        writing = asyncio.ensure_future(self._database.write(begin))
        try:
            await asyncio.shield(writing)
        finally:
            update.run = await writing  # also where this is cancelled: the row must not say "running" for ever
        update.learn = update.learn.gentler()
        update.is_last_try = True

    async def _end(self, update: _Update, outcome: LearnOutcome) -> LearnOutcome:
        await self._database.write(lambda s: update_log.record(s, outcome, update.trained))
        return outcome

    async def warm_up(self, rollouts: Sequence[Rollout]) -> None:
        """Run one step of an update and discard it, so that the first real one does not pay for one-time set-up."""
        samples = [replace(sample, kind="correction") for sample in lessons.anchor_samples(rollouts)]
        await self._candidates.train("warm-up", ZERO_ADAPTER, samples, self._config.learn.merged({"steps": 1}))
        await self._candidates.close("warm-up")


def _record_failure(update: _Update, s: Session, status: str, reason: str) -> None:
    if update_log.fail(s, update.run, status, reason, update.duration_ms) and update.note is not None:
        note_rows.set_state(s, update.note.id, NoteState.IN_PROMPT)
