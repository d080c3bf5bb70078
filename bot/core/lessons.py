"""The learning service: from a piece of feedback to its lesson's result; knows no platform.

Invariants: feedback is committed before anything is said about it; an update belongs to heed, not to the
request that brought it (a client that leaves does not stop it); the same idempotency key gives the same
feedback, and with another body it is refused.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

from bot.config import Settings
from bot.core import held_wishes, probation
from bot.core.feedback import FeedbackRecord
from bot.core.gateway import Gateway, Turn, check_text, sampling_of
from bot.errors import InvalidField
from bot.monitoring.metrics import Metrics
from engine.requests import LearnOutcome, LessonProgress, UndoResult
from storage import settings
from storage.conversations import completions
from storage.database import Database, Session
from storage.kinds import TAUGHT_AT_ONCE, FeedbackKind, FeedbackStatus, Meaning
from storage.learning import feedback, updates, versions
from storage.learning.updates import TAKEN_BACK
from storage.people import people
from storage.tables import Completion, Feedback, UpdateRun, new_id

if TYPE_CHECKING:
    from engine.engine import Engine

logger = logging.getLogger(__name__)

Status = Literal["learned", "queued", "kept", "rejected", "cancelled"]
OUTCOMES: dict[str, Status] = {
    FeedbackStatus.PENDING: "queued",
    FeedbackStatus.TRAINING: "queued",
    FeedbackStatus.LEARNED: "learned",
    FeedbackStatus.KEPT: "kept",
    FeedbackStatus.REJECTED: "rejected",
    FeedbackStatus.FAILED: "rejected",
    FeedbackStatus.UNDONE: "kept",
    FeedbackStatus.CANCELLED: "cancelled",
}
OPEN = (FeedbackStatus.PENDING, FeedbackStatus.TRAINING)  # not ended
PAUSED = "learning.paused"  # the setting that keeps learning paused over a restart
BY_FILE = "file"  # its value if the file did it (`bot.housekeeping.pause_file`)
WAITS_FOR_RESUME = "Noted. Learning is paused; heed will learn it afterwards."
Running = asyncio.Task[LearnOutcome] | None  # none: nothing is learned from it now
ShowProgress = Callable[[LessonProgress | None], Awaitable[float]]  # -> seconds until it wants to know again
RECENT = 200  # rows looked through for what an older piece of feedback became


@dataclass(frozen=True)
class LessonResult:
    """A piece of feedback with what became of it."""

    feedback: Feedback
    outcome: LearnOutcome
    retry: Completion | None = None
    ask: str = ""  # a question for the person, after a bare thumb down
    is_taken_back: bool = False  # the newest lesson was, because of this; the outcome's reason says so

    @property
    def is_put_off(self) -> bool:
        """True if it is not learned before learning is resumed."""
        return self.outcome.reason == WAITS_FOR_RESUME

    @property
    def is_held(self) -> bool:
        """True if heed kept the wish in mind before, and the answer it is about is older than that."""
        return self.outcome.reason.startswith(held_wishes.ALREADY)


class LearningService:
    """Commits feedback, has it learned, and gives the answer again."""

    def __init__(
        self,
        gateway: Gateway,
        engine: "Engine",
        database: Database,
        settings: Settings,
        metrics: Metrics,
    ) -> None:
        self._gateway = gateway
        self._engine = engine
        self._database = database
        self._settings = settings
        self._metrics = metrics
        self._tasks: dict[str, asyncio.Task[LearnOutcome]] = {}  # by feedback
        self._taking: set[asyncio.Task[Any]] = set()  # until their lesson has begun
        self._is_taken_up = False
        self.when_resumed: list[Callable[[], Awaitable[None]]] = []  # each is told once what waited has begun
        self.is_paused = False
        self.is_paused_by_file = False

    async def start(self) -> int:
        """Once the engine has started: take up what an earlier heed left, unless learning was paused."""
        paused = await self._database.read(lambda s: settings.get(s, PAUSED))
        await self.know_paused(bool(paused), by_file=paused == BY_FILE)
        return 0 if self.is_paused else await self._take_up()

    async def pause(self, *, by_file: bool = False) -> None:
        """From now on corrections are kept and wait, also over a restart.

        A lesson that has begun is finished, a consolidation is broken off and done again later.
        """
        await self._database.write(lambda s: settings.put(s, PAUSED, BY_FILE if by_file else True))
        await self.know_paused(True, by_file=by_file)

    async def resume(self) -> int:
        """Learn again, what waited first; returns how many pieces did."""
        await self._database.write(lambda s: settings.remove(s, PAUSED))
        await self.know_paused(False, by_file=False)
        num_waited = await self._take_up()
        for tell in list(self.when_resumed):
            await tell()
        return num_waited

    async def know_paused(self, is_paused: bool, *, by_file: bool) -> None:
        """Act on what storage says of learning; nothing that waits is begun by this."""
        self.is_paused, self.is_paused_by_file = is_paused, by_file
        await self._engine.pause_consolidation(is_paused)

    async def _take_up(self) -> int:
        if not self._is_taken_up:
            self._is_taken_up = True
            return await self._engine.resume_pending()
        waiting = await self._database.read(feedback.pending)
        for row in waiting:
            self._begin(row)
        return len(waiting)

    async def teach(
        self,
        user_id: str,
        record: FeedbackRecord,
        *,
        idempotency_key: str | None = None,
        training: dict[str, Any] | None = None,
        wait_s: float | None = None,
        retry: bool = False,
    ) -> LessonResult:
        """Commit one piece of feedback, learn it, and with `retry` answer again with what was learned.

        A lesson that takes longer than `wait_s` (None: `chat.learn_timeout_s`) goes on, and is `queued` here.
        """
        about = {"idempotency_key": idempotency_key, "training": training}
        taking = asyncio.create_task(self._take(user_id, record, **about), name="take feedback")
        self._taking.add(taking)
        taking.add_done_callback(self._taking.discard)
        row, is_new, task = await asyncio.shield(taking)
        outcome = await self._outcome(row, task, self._settings.chat.learn_timeout_s if wait_s is None else wait_s)
        lesson = LessonResult(row, outcome, ask=record.question)
        if record.wants_reason:
            lesson = await self._reconsidered(lesson)
        return replace(lesson, retry=await self._answered_again(lesson, is_new=is_new)) if retry else lesson

    async def _take(self, user_id: str, record: FeedbackRecord, **about: Any) -> tuple[Feedback, bool, Running]:
        """Commit feedback and begin its lesson: one step, even for a client that leaves between the two."""
        row, is_new = await self.commit(user_id, record, **about)
        return row, is_new, self._begun(row)

    async def ended(self, lesson: LessonResult) -> LessonResult:
        """Return a lesson that still runs once it has ended, however long that takes, and any other one as it is."""
        task = self._tasks.get(lesson.feedback.id)
        if task is not None:
            await asyncio.wait([task])
            if not task.cancelled():
                return replace(lesson, outcome=task.result())
        if lesson.outcome.status != "queued":
            return lesson
        row = await self._database.read(lambda s: feedback.get(s, lesson.feedback.id))
        return replace(lesson, outcome=await self.outcome_of(row))

    async def followed(self, lesson: LessonResult, show: ShowProgress) -> LessonResult:
        """Return a lesson once it has ended; until then `show` is told how far it is, and says for how many seconds."""
        ended = asyncio.create_task(self.ended(lesson), name="a lesson that is followed")
        try:
            while not ended.done():
                pause_s = await show(await self.progress(lesson.feedback.id))
                await asyncio.wait({ended}, timeout=pause_s)
            return ended.result()
        finally:
            ended.cancel()

    def is_under_way(self, feedback_id: str) -> bool:
        """Return True for a lesson that this process waits for, so that `ended` will return what became of it."""
        return feedback_id in self._tasks

    async def progress(self, feedback_id: str) -> LessonProgress | None:
        """Return how far a lesson is, or None if it neither waits nor runs."""
        return await self._engine.lesson_progress(feedback_id)

    async def cancel(self, user_id: str, feedback_id: str) -> LearnOutcome:
        """Stop a lesson of this person, unless it has ended. Return how it ended. Raises FeedbackNotFound."""
        row = await self._database.read(lambda s: feedback.of_person(s, user_id, feedback_id))
        if row.status in OPEN:
            return await self._engine.cancel_lesson(row.id)
        return await self.outcome_of(row)

    async def cancel_newest(self, user_id: str) -> LearnOutcome | None:
        """Stop the person's newest lesson that waits or runs. Return how it ended, or None if there is none."""
        rows = await self._database.read(lambda s: feedback.history(s, user_id, RECENT))
        newest = next((row for row in rows if row.status in OPEN and row.kind in TAUGHT_AT_ONCE), None)
        return await self._engine.cancel_lesson(newest.id) if newest else None

    async def _reconsidered(self, lesson: LessonResult) -> LessonResult:
        """Undo the newest lesson after a complaint, if it is on probation and made the answers worse."""
        row = lesson.feedback
        version = (await self._gateway.completion(row.user_id, row.completion_id or "")).adapter_version
        reason = await self._database.read(lambda s: self._why_worse(s, row.user_id, version))
        undone: UndoResult | None = None
        if reason and self._engine.is_ready:
            undone = await self._engine.take_back(row, version, reason)
        elif row.took_back == version:  # told again if heed ended before it was told
            undone, reason = await self._database.read(lambda s: _taken_back(s, row.user_id, version))
        if undone is None:
            return lesson
        outcome = replace(
            lesson.outcome, adapter_version=undone.version, reason=probation.taken_back_line(version, undone, reason)
        )
        return replace(lesson, outcome=outcome, ask="", is_taken_back=True)

    def _why_worse(self, s: Session, user_id: str, version: int) -> str:
        config = self._settings.versions
        if not version or people.get(s, user_id).active_version != version:
            return ""
        if _taken_back(s, user_id, version)[0] is not None:
            return ""  # and gone back to since, on purpose
        answers = completions.first_of_version(s, user_id, version, config.probation_answers)
        return probation.why_worse(answers, feedback.about(s, user_id, answers), config)

    async def check(self, record: FeedbackRecord) -> None:
        """Raise InvalidField if the words are too long or no text, or a note takes more than its share of a prompt."""
        check_text(record.text, self._settings.chat.text_limit_chars, "text")
        check_text(record.value, 64, "value")
        if record.kind == FeedbackKind.NOTE and self._engine.is_ready:
            _check_note(*await self._engine.note_size(record.text))

    async def commit(
        self,
        user_id: str,
        record: FeedbackRecord,
        *,
        idempotency_key: str | None = None,
        training: dict[str, Any] | None = None,
    ) -> tuple[Feedback, bool]:
        """Return the feedback, durable on return, and whether it is new.

        Raises CompletionNotFound, IdempotencyConflict or InvalidField; then nothing was stored.
        """
        await self.check(record)
        wanted = Feedback(
            idempotency_key=idempotency_key or new_id(),
            user_id=user_id,
            completion_id=record.completion_id,
            kind=record.kind,
            text=record.text,
            value=record.value,
            training=training,
            scope=record.scope or "",
            context=list(record.context) or None,
        )
        row, is_new = await self._database.write(lambda s: _commit(s, wanted, record))
        if is_new:
            self._metrics.feedback.labels(record.kind.value).inc()
        return row, is_new

    async def drain(self) -> None:
        """Give up waiting for running updates; what they have not finished stays pending in storage."""
        await asyncio.gather(*self._taking, return_exceptions=True)
        tasks = list(self._tasks.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def outcome_of(self, row: Feedback) -> LearnOutcome:
        """Return what became of feedback that is stored already."""
        runs = await self._database.read(lambda s: updates.recent(s, row.user_id, RECENT))
        user = await self._gateway.user(row.user_id)
        run = next((run for run in runs if run.feedback_id == row.id), None)
        return stored_outcome(row, run, user.active_version, is_calibrated=self._engine.config.is_calibrated)

    def _begun(self, row: Feedback) -> Running:
        if row.status not in OPEN or self._is_put_off(row) or not self._engine.is_ready:
            return None  # what is pending is taken up once the engine is ready, or learning is resumed
        return self._begin(row)

    def _is_put_off(self, row: Feedback) -> bool:
        return self.is_paused and row.status in OPEN and row.kind in TAUGHT_AT_ONCE

    async def _outcome(self, row: Feedback, task: Running, wait_s: float) -> LearnOutcome:
        if task is None:
            stored = await self.outcome_of(row)
            return replace(stored, reason=WAITS_FOR_RESUME) if self._is_put_off(row) else stored
        done, _ = await asyncio.wait([task], timeout=wait_s) if wait_s else (set(), None)
        if done and not task.cancelled():  # it is if what was learned from them has just been removed
            return task.result()
        stored = await self.outcome_of(row)  # and it may end while that is read
        return task.result() if task.done() and not task.cancelled() else stored

    def _begin(self, row: Feedback) -> "asyncio.Task[LearnOutcome]":
        if row.id not in self._tasks:
            task = asyncio.create_task(self._learn(row), name=f"learn {row.id}")
            self._tasks[row.id] = task
            task.add_done_callback(lambda _: self._tasks.pop(row.id))
        return self._tasks[row.id]

    async def _learn(self, row: Feedback) -> LearnOutcome:
        try:
            outcome = await self._engine.learn(row.id)
        except Exception:
            logger.exception("an update failed and will be taken up again")
            self._metrics.errors.labels("learn").inc()
            outcome = await self.outcome_of(row)
            return replace(outcome, reason="The update was interrupted. heed will take it up again by itself.")
        self._metrics.lessons.labels(outcome.status).inc()
        self._metrics.lesson_s.observe(outcome.duration_ms / 1000)
        return outcome

    async def turn_again(self, lesson: LessonResult) -> Turn | None:
        """Return the turn that gives the corrected answer again, or None if nothing has changed."""
        row, outcome = lesson.feedback, lesson.outcome
        is_alone = outcome.status == "kept" and outcome.reading == Meaning.REMARK  # no other answer shows it
        is_changed = outcome.status == "learned" or outcome.note is not None or lesson.is_taken_back or lesson.is_held
        if row.completion_id is None or row.kind == FeedbackKind.NOTE or not (is_changed or is_alone):
            return None
        corrected = await self._gateway.completion(row.user_id, row.completion_id)
        first = (await self._gateway.answers(corrected))[0]  # an answer asked for once more was sampled warm
        turn = self._gateway.again(corrected, sampling_of(first))
        return replace(turn, remark=row.text) if is_alone else turn

    async def _answered_again(self, lesson: LessonResult, *, is_new: bool) -> Completion | None:
        turn = await self.turn_again(lesson)
        if turn is None:
            return None
        given = None if is_new else await self._given_again(lesson.feedback, lesson.outcome)
        return given or await self._gateway.answer(turn)

    async def _given_again(self, row: Feedback, outcome: LearnOutcome) -> Completion | None:
        recent = await self._database.read(lambda s: completions.recent(s, row.user_id, RECENT))
        again = (answer for answer in recent if answer.retry_of == row.completion_id)
        return next((answer for answer in again if answer.adapter_version >= outcome.adapter_version), None)


def _check_note(size: int, most: int) -> None:
    if size > most:
        raise InvalidField(f"The note has {size} tokens, and a note may have at most {most}. Shorten it.", "text")


def _commit(s: Session, wanted: Feedback, record: FeedbackRecord) -> tuple[Feedback, bool]:
    row, is_new = feedback.add(s, wanted)
    held = held_wishes.already(s, wanted) if is_new else ""
    if is_new and record.completion_id is not None:  # an answer that gets a complaint is approved no more
        completions.mark_gold(s, wanted.user_id, record.completion_id, is_gold=record.is_approval)
    if is_new and (held or not record.is_lesson):
        feedback.set_status(s, row.id, FeedbackStatus.KEPT, held)
    return row, is_new


def _taken_back(s: Session, user_id: str, number: int) -> tuple[UndoResult | None, str]:
    """Return what is active since a version was taken back, and why that was, or None if it was not."""
    update_id = versions.get(s, user_id, number).update_id if number else None
    run = updates.get(s, user_id, update_id) if update_id else None
    if run is None or run.status != TAKEN_BACK:
        return None, ""
    return UndoResult(people.get(s, user_id).active_version), run.error


def stored_outcome(row: Feedback, run: UpdateRun | None, active_version: int, *, is_calibrated: bool) -> LearnOutcome:
    """Return what storage knows of a piece of feedback, in the engine's words. `is_calibrated`: the model is now."""
    plain = LearnOutcome(
        row.id,
        OUTCOMES[row.status],
        active_version,
        reason=row.reason,
        is_calibrated=is_calibrated,
        reading=row.reading,
        is_unsure=row.is_unsure,
    )
    if run is None:
        return plain
    return replace(
        plain,
        adapter_version=run.version if run.version is not None and plain.status == "learned" else active_version,
        steps=run.steps,
        divergence_before=run.divergence_before,
        divergence_after=run.divergence_after,
        duration_ms=run.duration_ms,
        phases_ms=run.phases_ms or {},
        gate=run.gate or {},
        heat=[(str(text), float(weight)) for text, weight in run.heat or []],
        update_id=run.id,
    )
