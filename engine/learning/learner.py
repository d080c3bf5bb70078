"""One lesson: an update from one piece of feedback to an active version, or to a reason against it.

Owns the sequence rollouts -> note -> training -> gate -> active version and its record in storage; the training and
the files are `engine.learning.candidates`'. Invariants: feedback stays in storage if an update fails or is cancelled;
one transaction makes a version active and marks its feedback as learned, so that nothing is trained twice; a note is
in the prompt from before its update runs until a probe shows that the weights hold it. A lesson about an agent's work
has two updates (ADR 45): the denied call alone, so that it can be tried again at once, and the whole, which takes its
place.
"""

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

from engine.adapter_ref import ZERO_ADAPTER
from engine.adapters import superseding
from engine.config import LearnConfig
from engine.gates.candidate import Verdict
from engine.host.trainer_client import finite_or_none
from engine.learning import bystanders, endings, update_log
from engine.learning.bystanders import Bystanders
from engine.learning.candidates import Acceptance, Candidates
from engine.learning.intent import REASONS, IntentReader
from engine.learning.lesson_samples import LessonSamples
from engine.learning.progress import ProgressEstimate
from engine.learning.update_state import UpdateState
from engine.prompts.hindsight import teacher_messages
from engine.prompts.tool_messages import carried
from engine.requests import LearnOutcome
from engine.sample import Sample
from engine.samples import lessons, notes
from engine.samples.context import LearningContext
from engine.samples.facts import Facts
from engine.samples.lessons import Lesson
from engine.samples.rollouts import RECENT_ANSWERS, Rollout, conversation, of_kind
from storage.conversations import completions
from storage.database import Session
from storage.errors import PersonNotFound
from storage.kinds import Meaning, NoteState
from storage.learning import feedback, updates
from storage.learning import notes as note_rows
from storage.people import people
from storage.tables import Completion, Feedback, Note, UpdateRun

_NOTHING = "My answers follow this already. If something is still missing, say what should be different."
_TOO_LONG = "This is longer than I can learn from at once. Say it in fewer words."
QUIET_S, LONGEST_TRY_S, LOOK_S = 0.4, 4.0, 0.05  # for the call that is tried again
DEEPENING = "deepening"  # the kind of the update that takes a first version's place


@dataclass(frozen=True)
class _Begun:
    """A lesson about an agent's work whose first version answers: the whole is to be taught."""

    said: Lesson
    lesson: Lesson  # as its teacher reads it
    update: UpdateState
    others: Sequence[Rollout]
    version: int  # the first one


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
        self._samples = LessonSamples(context, facts)
        self._intents = IntentReader(context)
        self._begun: _Begun | None = None  # a lesson whose first version answers
        self.progress = ProgressEstimate(lambda: self._trainer.trained_share)

    # -- one lesson --------------------------------------------------------------------------------------------------

    async def learn(self, feedback_id: str) -> LearnOutcome:
        """Train on one correction or ideal. Raise EngineRestarting or TrainerError if the update cannot finish."""
        self.progress.begin(feedback_id)
        self._begun = None
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
        if outcome.status == "learned":
            self.progress.end(outcome.phases_ms)
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

    async def _teach(self, lesson: Lesson, update: UpdateState) -> LearnOutcome:
        update.intent = await self._intents.read(lesson, update.parent, update.notes, update.recent)
        update.lap("reading")
        if not update.intent.is_taught:
            return await self._keep(lesson, update)
        if not update.intent.reaches_others:
            return await self._teach_alone(lesson.in_own_words(), update)
        others = await self._samples.counterfactuals(lesson, update)
        update.lap("rollouts")
        if update.intent.has_note:
            await self._take_note(lesson, update)
        said, lesson = lesson, update.as_read(lesson)
        if carried(lesson.corrected.messages) and update.learn.work_first_steps:
            first = await self._teach_first(lesson, update)
            if first is not None:
                self._begun = _Begun(said, lesson, update, others, first.adapter_version)
                return first
        return await self._finish(lesson, update, await self._samples.whole(lesson, update, others))

    async def _teach_first(self, lesson: Lesson, update: UpdateState) -> LearnOutcome | None:
        """Teach the denied call alone, in a few steps. Return None, with all as before, if that makes no version."""
        samples = await self._samples.first(lesson, update)
        if not any(sample.is_taught for sample in samples):
            return None
        whole, update.learn = update.learn, update.learn.first_at_work()
        await self._train(update, await self._samples.with_anchors(lesson, update, samples))
        update.learn = whole
        if update.trained.divergence_before < update.learn.min_divergence:
            await self._candidates.close(update.run.id)
            return None
        verdict, version = await self._made_active(update)
        if verdict.is_accepted:
            return update.outcome("learned", version, verdict=verdict)
        await self._begin_again(update, verdict)
        return None

    async def deepen(self) -> None:
        """Teach the whole of the lesson whose first version answers; what it makes takes that one's place.

        Do nothing if there is none. Raise EngineRestarting or TrainerError; then the first version stays.
        """
        begun, self._begun = self._begun, None
        if begun is None:
            return
        await self._tried_again()
        if not await self._is_answering(begun):
            return
        update = begun.update.another(DEEPENING)
        update.run = await self._database.write(lambda s: updates.start(s, update.run))

        def record(s: Session, status: str, reason: str) -> None:
            update_log.fail(s, update.run, status, reason, update.duration_ms)

        async with update_log.failures_recorded(self._database, record, cancelled_as=updates.CANCELLED):
            update.intent = await self._intents.widened(update.intent, begun.said, update.notes, update.recent)
            taught = await self._samples.whole(begun.lesson, update, begun.others)
            await self._take_place(
                update, await self._samples.with_anchors(begun.lesson, update, taught), begun.version
            )

    async def _tried_again(self) -> None:
        """Return when nothing is answered for a moment, or at the latest time: the denied call is asked for anew."""
        quiet_since_s = time.monotonic()
        ends_s = quiet_since_s + LONGEST_TRY_S
        while (now_s := time.monotonic()) < ends_s and now_s - quiet_since_s < QUIET_S:
            await asyncio.sleep(LOOK_S)
            if self._host.num_running:
                quiet_since_s = time.monotonic()

    async def _take_place(self, update: UpdateState, samples: list[Sample], version: int) -> None:
        """Make a version that takes a first one's place; one that is refused is tried once more and gently."""
        await self._train(update, samples)
        verdict, _ = await self._judged(update, samples, replaced=version)
        if not verdict.is_accepted:
            await self._database.write(partial(_record_refusal, update, verdict))

    async def _is_answering(self, begun: _Begun) -> bool:
        """Return True unless the person has taken the lesson back, learns no more, or is gone."""
        user_id = begun.update.run.user_id
        try:
            user = await self._database.read(lambda s: people.get(s, user_id))
        except PersonNotFound:
            return False
        return user.is_learning and user.active_version == begun.version

    async def _teach_alone(self, lesson: Lesson, update: UpdateState) -> LearnOutcome:
        """Teach a remark: on its own prompt, while other prompts are held to what this version answers."""
        if carried(lesson.corrected.messages):  # one prompt needs no more steps than a chat's lesson
            update.learn = replace(update.learn, steps=max(1, update.learn.steps // update.learn.work_steps))
        if update.intent.spares_others:
            update.bystanders = Bystanders.of(self._rollouts, update.parent, lesson.corrected.messages, update.learn)
        return await self._finish(lesson, update, await self._samples.alone(lesson, update))

    async def _keep(self, lesson: Lesson, update: UpdateState) -> LearnOutcome:
        """Train nothing: a fact becomes a note, thanks approve the answer."""
        meaning = update.intent.meaning
        if meaning == Meaning.FACT:
            await self._take_note(lesson.in_own_words(), update)
        elif meaning == Meaning.THANKS:
            row = lesson.completion
            await self._database.write(lambda s: completions.mark_gold(s, row.user_id, row.id))
        return await self._end(update, update.outcome("kept", update.parent.number, REASONS[meaning]))

    async def _finish(self, lesson: Lesson, update: UpdateState, taught: list[Sample]) -> LearnOutcome:
        """Train on the samples and make the result active, unless there was nothing to learn."""
        if not any(sample.is_taught for sample in taught):
            seen = teacher_messages(lesson.corrected.messages, update.read, lesson.hindsight)
            reason = self._prompts.refusal(seen) or _TOO_LONG
            return await self._end(update, update.outcome("kept", update.parent.number, reason))
        samples = await self._samples.with_anchors(lesson, update, taught)
        await self._train(update, samples)
        if update.trained.divergence_before < update.learn.min_divergence:
            await self._candidates.close(update.run.id)
            return await self._end(update, update.outcome("kept", update.parent.number, _NOTHING))
        return await self._activate(update, samples)

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

    async def _begin(self, row: Feedback, lesson: Lesson, learn: LearnConfig) -> UpdateState:
        live = await self._database.read(lambda s: note_rows.live(s, row.user_id))
        parent = await self._active.active(row.user_id)
        shown = self._read_besides(lesson, live, learn)
        run = UpdateRun(
            user_id=row.user_id, feedback_id=row.id, kind=row.kind, parent_version=parent.number, notes=shown
        )
        recent = await self._recent(lesson)
        update = UpdateState(
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

    def _read_besides(self, lesson: Lesson, live: Sequence[Note], learn: LearnConfig) -> list[str]:
        """Return the words of the notes that the teacher reads besides the lesson's own."""
        others = [note for note in notes.showing(live) if note.feedback_id != lesson.feedback_id]
        return notes.said(others, self._config.note, self._host.max_model_len) if learn.reads_notes else []

    async def _recent(self, lesson: Lesson) -> list[Completion]:
        rows = await self._database.read(lambda s: completions.recent(s, lesson.user_id, RECENT_ANSWERS))
        return of_kind(rows, lesson.corrected.messages)

    async def _take_note(self, lesson: Lesson, update: UpdateState) -> None:
        """Store the lesson's note. If that takes the place of a wish the update is a `LearnConfig.replacing` one."""
        note = update.note or await self._add_note(lesson, update)
        replaced = await self._database.read(lambda s: superseding.replaced_by(s, note))
        update.replaced = [wish.text for wish in replaced]
        if replaced:
            update.learn = update.learn.replacing()

    async def _add_note(self, lesson: Lesson, update: UpdateState) -> Note:
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

    async def _train(self, update: UpdateState, samples: list[Sample]) -> None:
        trained = await self._candidates.train(update.run.id, update.parent, samples, update.learn)
        update.lap("train")
        update.trained = trained
        update.heat = [(self._prompts.token_text(int(t)), round(finite_or_none(h) or 0.0, 3)) for t, h in trained.heat]

    async def _activate(self, update: UpdateState, samples: list[Sample]) -> LearnOutcome:
        verdict, version = await self._judged(update, samples)
        if verdict.is_accepted:
            return update.outcome("learned", version, verdict=verdict)
        parent = update.parent.number
        if _changes_others(verdict):
            return await self._end(update, update.outcome("kept", parent, verdict.reason, verdict))
        reason = endings.refused(verdict.reason, has_note=update.note is not None)
        return await self._end(update, update.outcome("rejected", parent, reason, verdict))

    async def _judged(self, update: UpdateState, samples: list[Sample], replaced: int = 0) -> tuple[Verdict, int]:
        """Gate what was trained; what is refused is trained once more and gently, unless it changes others."""
        verdict, version = await self._made_active(update, replaced)
        if verdict.is_accepted or update.is_last_try or _changes_others(verdict):
            return verdict, version
        await self._begin_again(update, verdict)
        update.try_gently()
        await self._train(update, samples)
        return await self._judged(update, samples, replaced)

    async def _made_active(self, update: UpdateState, replaced: int = 0) -> tuple[Verdict, int]:
        """Gate what was trained and make it active, in place of the version `replaced`. Return its number, too."""
        verdict, version = await self._candidates.activate(
            update.run,
            update.parent.number,
            update.trained,
            update.lap,
            Acceptance(
                examine=update.bystanders.examine if update.bystanders else None,
                also=lambda s, v, made: update_log.record(
                    s, update.outcome("learned", made.number, verdict=v), update.trained, made.number
                ),
                replaced=replaced,
            ),
        )
        if verdict.is_accepted and update.parent.number:
            self._rollouts.drop(update.parent.name)
        return verdict, version.number

    async def _begin_again(self, update: UpdateState, verdict: Verdict) -> None:
        """Close the refused attempt in the log, and begin another one of the same lesson."""
        again = update.next_run()

        def begin(s: Session) -> UpdateRun:
            _record_refusal(update, verdict, s)
            return updates.start(s, again)

        writing = asyncio.ensure_future(self._database.write(begin))
        try:
            await asyncio.shield(writing)
        finally:
            update.run = await writing  # also where this is cancelled: the row must not say "running" for ever

    async def _end(self, update: UpdateState, outcome: LearnOutcome) -> LearnOutcome:
        await self._database.write(lambda s: update_log.record(s, outcome, update.trained))
        return outcome

    async def warm_up(self, rollouts: Sequence[Rollout]) -> None:
        """Run one step of an update and discard it, so that the first real one does not pay for one-time set-up."""
        samples = [replace(sample, kind="correction") for sample in lessons.anchor_samples(rollouts)]
        await self._candidates.train("warm-up", ZERO_ADAPTER, samples, self._config.learn.merged({"steps": 1}))
        await self._candidates.close("warm-up")


def _changes_others(verdict: Verdict) -> bool:
    """Return True if a remark changed other answers: a gentler try would as well."""
    return not verdict.checks.get(bystanders.CHECK, True)


def _record_refusal(update: UpdateState, verdict: Verdict, s: Session) -> None:
    update_log.finish(
        s,
        update.run.id,
        "rejected",
        update.trained,
        duration_ms=update.duration_ms,
        phases_ms=dict(update.phases_ms),
        gate=verdict.to_dict(),
        error=verdict.reason,
    )


def _record_failure(update: UpdateState, s: Session, status: str, reason: str) -> None:
    if update_log.fail(s, update.run, status, reason, update.duration_ms) and update.note is not None:
        note_rows.set_state(s, update.note.id, NoteState.IN_PROMPT)
