"""The engine as the chat side sees it: generate, learn, undo, roll back, forget.

The only class `bot/` talks to. Owns the host, the adapters, the rollouts, the learner and the scheduler. Invariants:
every answer names the adapter version it was made with; a person's notes and adapter reach that person's answers
only; what is acknowledged is in storage.
"""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import aclosing, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path

from engine.adapters import undo
from engine.adapters.copies import copies_in
from engine.adapters.store import AdapterStore
from engine.adapters.zip_format import AdapterPackage
from engine.calibration import prior
from engine.calibration.idle import IdleCalibration
from engine.calibration.overview import overview
from engine.calibration.trials import Trials
from engine.config import EngineConfig
from engine.consolidation.schedule import PAUSED, ConsolidationSchedule
from engine.consolidation.waiters import Waiters, awaited
from engine.errors import EngineError
from engine.host.model_files import fingerprint
from engine.host.vllm_host import VllmHost
from engine.learning import endings, wording
from engine.learning.candidates import give_up_unfinished
from engine.learning.scheduler import MAX_ATTEMPTS, BackgroundTasks, UpdateScheduler
from engine.parts import Parts
from engine.prompts.hindsight import teacher_messages
from engine.reading import fitting
from engine.requests import (
    ChatMessage,
    ConsolidationOutcome,
    Delta,
    EngineLoad,
    GenerateRequest,
    GenerateResult,
    LearnOutcome,
    LessonProgress,
    Likelihood,
    ModelLearning,
    ModelSkills,
    Sampling,
    UndoResult,
)
from engine.samples.lessons import Lesson
from storage.database import Database
from storage.kinds import TAUGHT_AT_ONCE, FeedbackKind
from storage.learning import feedback, versions
from storage.people import erasure, people
from storage.tables import Completion, Feedback, Note, User

Progress = Callable[[str], None]


class Engine:
    """Generation and learning for all people."""

    def __init__(self, config: EngineConfig, database: Database) -> None:
        """Load nothing before `start`."""
        self.config = config
        self._database = database
        self._state = ("starting", "")
        self._host = VllmHost(config, self._on_state)
        self._adapters = AdapterStore(config.data_dir, database, copies_in(config.object_store, database))
        self._rebuilds = Waiters[ConsolidationOutcome]()
        self._parts: Parts | None = None

    async def start(self, progress: Progress = lambda _line: None) -> None:
        """Start vLLM and sweep up. Raises ModelNotFoundError, ArchitectureNotSupported or EngineStartError."""
        await self._database.write(give_up_unfinished)
        await self._adapters.copies.claim()
        await self._adapters.sweep()
        await self._host.start(partial(self._starting, progress))
        folder = self._host.model_folder
        base_model = await asyncio.to_thread(fingerprint, folder)
        self.calibration = await asyncio.to_thread(prior.found_or_estimated, self.config, folder, base_model)
        self.config = self.calibration.applied(self.config)
        parts = self._parts = Parts.build(self.config, self._database, self._host, self._adapters, base_model)
        is_idle = partial(parts.generator.is_idle_for, self.config.sleep.idle_s)
        consolidate = parts.consolidator.consolidate
        self._schedule = ConsolidationSchedule(self.config.sleep, self._database, consolidate, is_idle)
        tasks: BackgroundTasks = {"settle": self._settle, "rebuild": self._rebuild, "consolidate": self._schedule.run}
        tasks["foresee"] = parts.foresight.prepare
        trials = Trials(parts.context, parts.candidates)
        fit = partial(fitting.fit_and_keep, parts.context.reader, base_model, self.config.data_dir)
        self._idle_calibration = IdleCalibration(trials, self.config, self.calibration, is_idle, fit)
        tasks = tasks | {"calibrate": self._idle_calibration.run} if self._host.trainability.can_learn else {}
        park, give_up = partial(endings.park, self._database), partial(endings.cancel, self._database)
        self._scheduler = UpdateScheduler(parts.foresight.first, parts.learner, tasks, park, give_up)
        self._scheduler.start()
        submit = partial(self._scheduler.submit_task, task="calibrate")
        self._watchers = [
            asyncio.create_task(self._schedule.watch(self._submit_consolidation), name="heed-consolidation"),
            asyncio.create_task(self._idle_calibration.watch(submit), name="heed-calibration"),
            asyncio.create_task(self._adapters.settle_copies(), name="heed-copies"),
        ]

    async def calibrate(self, progress: Progress) -> Path:
        """Measure the model's rate and gates for the next start, while no one learns. Return the file."""
        self._idle_calibration.end()
        await self.settled()
        return await self._idle_calibration.at_once(progress)

    async def stop(self) -> None:
        """End updates and vLLM; unfinished updates stay pending in storage."""
        if self._parts is not None:
            for watcher in self._watchers:
                watcher.cancel()
            await asyncio.gather(*self._watchers, return_exceptions=True)
            await self._scheduler.stop()
            self._schedule.drop()
            self._rebuilds.drop()
            await self._parts.context.active.stop()
        await self._host.stop()

    @property
    def _started(self) -> "Parts":
        assert self._parts is not None, "the engine has not started"
        return self._parts

    async def _settle(self, user_id: str) -> None:
        await self._started.note_probe.settle(user_id)
        await self._started.audit.look(user_id)

    # -- generation --------------------------------------------------------------------------------------------------

    async def generate(self, request: GenerateRequest) -> AsyncGenerator[Delta, None]:
        """Stream an answer; the last delta carries the result. Raises PromptTooLongError or EngineRestarting."""
        async with aclosing(self._started.generator.generate(request)) as deltas:
            async for delta in deltas:
                if delta.result is not None and self._started.foresight.notices(request):
                    self._scheduler.submit_task(request.user_id, "foresee")
                yield delta

    async def prepare(self, user_id: str) -> None:
        """Have the person's adapter ready before they ask. Raises PersonNotFound or EngineRestarting."""
        await self._started.context.active.active(user_id)

    async def score(self, request: GenerateRequest, answer: str) -> Likelihood:
        """Return how likely `answer` is in reply to `request`. Raises PromptTooLongError or EngineRestarting."""
        return await self._started.generator.score(request, answer)

    async def adopt(self, request: GenerateRequest, text: str) -> GenerateResult:
        """Return `text` as heed's own answer to `request`. Raises PromptTooLongError, EngineRestarting."""
        return await self._started.generator.adopt(request, text)

    # -- learning ----------------------------------------------------------------------------------------------------

    async def learn(self, feedback_id: str) -> LearnOutcome:
        """Learn from committed feedback. Return the outcome once its update has ended.

        Feedback that has ended before is not taken up again. Raises FeedbackNotFound.
        """
        outcome = await self._take_up(await self._database.read(lambda s: feedback.get(s, feedback_id)))
        return outcome if isinstance(outcome, LearnOutcome) else await asyncio.shield(outcome)

    async def _take_up(self, row: Feedback) -> "LearnOutcome | asyncio.Future[LearnOutcome]":
        """End feedback that needs no update, and queue the rest."""
        user = await self._database.read(lambda s: people.get(s, row.user_id))
        if row.status not in endings.OPEN:
            return endings.of_row(row, user.active_version)
        context = self._started.context
        keep_note = partial(endings.keep_note, self._database, row, user.active_version, count=context.prompts.count)
        if row.kind == FeedbackKind.NOTE:
            return await keep_note(await wording.of_note(context, row))
        if row.kind not in TAUGHT_AT_ONCE or row.completion_id is None:
            return await endings.keep(self._database, row, user.active_version, "")
        if not user.is_learning:
            return await endings.keep(self._database, row, user.active_version, endings.LEARNING_IS_OFF)
        if untrained := self._host.trainability.reason:
            reason = f"{untrained} The note is in the prompt."
            return await keep_note(await wording.of_note(context, row), reason=reason)
        return self._scheduler.submit(row.user_id, row.id)

    async def resume_pending(self) -> int:
        """Take up the feedback that an earlier heed left pending. Return how many pieces."""
        waiting = await self._database.write(partial(endings.interrupted, max_attempts=MAX_ATTEMPTS))
        for row in waiting:
            await self._take_up(row)
        for user_id in await self._schedule.resume():
            self._submit_consolidation(user_id)
        return len(waiting)

    async def settled(self) -> None:
        """Return when every update and every probe has ended."""
        await self._scheduler.idle()

    async def lesson_progress(self, feedback_id: str) -> LessonProgress | None:
        """Return how far a lesson is, or None if it neither waits nor runs. Of this process only, never stored."""
        known = self._scheduler.place(feedback_id) if self._parts is not None else None
        if known is None:
            return None
        place, duration_s = known
        if place:
            return LessonProgress("queued", duration_s=duration_s, place=place)
        return self._started.learner.progress.of(feedback_id, duration_s)

    async def cancel_lesson(self, feedback_id: str) -> LearnOutcome:
        """Stop a lesson that waits or runs: nothing is learned, its note goes, the active version stays.

        Return how the feedback ended; a lesson that has ended is left as it is. Raises FeedbackNotFound.
        """
        outcome = await self._scheduler.cancel(feedback_id) if self._parts is not None else None
        return outcome or await endings.cancel(self._database, feedback_id)

    # -- consolidating -----------------------------------------------------------------------------------------------

    async def consolidate(self, user_id: str) -> ConsolidationOutcome:
        """Consolidate a person now, behind all lessons. Return the outcome once it has ended.

        Raises PersonNotFound.
        """
        user = await self._database.read(lambda s: people.get(s, user_id))
        if reason := self._why_not(user):
            return ConsolidationOutcome("kept", user.active_version, reason)
        outcome = self._schedule.ask(user_id)
        self._submit_consolidation(user_id)
        return await awaited(outcome)

    async def rebuild(self, user_id: str) -> ConsolidationOutcome:
        """Make a person's adapter again from zero, behind all lessons. Return the outcome once it has ended.

        Raises PersonNotFound.
        """
        user = await self._database.read(lambda s: people.get(s, user_id))
        if reason := self._why_not(user):
            return ConsolidationOutcome("kept", user.active_version, reason)
        outcome = self._rebuilds.ask(user_id)
        self._scheduler.submit_task(user_id, "rebuild")
        return await awaited(outcome)

    def _why_not(self, user: User) -> str:
        """Return why nothing of a person can be trained now; empty if it can."""
        if not user.is_learning:
            return endings.LEARNING_IS_OFF
        return self._host.trainability.reason or (PAUSED if self._schedule.is_paused else "")

    async def _rebuild(self, user_id: str) -> None:
        """Run the rebuild and answer its waiters. May be cancelled at any time."""
        try:
            self._rebuilds.answer(user_id, await self._started.consolidator.rebuild(user_id))
        except Exception:
            self._rebuilds.drop(user_id)  # no caller waits for ever; the scheduler counts it
            raise

    async def pause_consolidation(self, is_paused: bool) -> None:
        """Break off the running consolidation and begin no other, or let them begin again."""
        self._schedule.is_paused = is_paused
        self._scheduler.hold(is_paused)

    def _submit_consolidation(self, user_id: str) -> None:
        self._scheduler.submit_task(user_id, "consolidate")

    # -- taking back -------------------------------------------------------------------------------------------------

    async def undo(self, user_id: str) -> UndoResult:
        """Undo the last lesson, version and note together. Waits for one that runs. Raises NothingToUndo."""
        async with self._scheduler.change(user_id):
            result = await self._database.write(lambda s: undo.undo(s, user_id))
        self._scheduler.submit_task(user_id, "rebuild" if result.must_rebuild else "settle")
        return result

    async def take_back(self, complaint: Feedback, version: int, reason: str) -> UndoResult | None:
        """Undo the lesson of a version and store the reason. Return None if the version is no longer active."""
        async with self._scheduler.change(complaint.user_id):
            result = await self._database.write(lambda s: undo.take_back(s, complaint, version, reason))
        if result is not None:
            self._scheduler.submit_task(complaint.user_id, "rebuild" if result.must_rebuild else "settle")
        return result

    async def rollback(self, user_id: str, version: int) -> int:
        """Make an accepted version active, 0 for the base. Raises VersionNotFound, VersionPruned, VersionStateError."""
        async with self._scheduler.change(user_id):
            await self._database.write(lambda s: undo.return_to(s, user_id, version))
        self._scheduler.submit_task(user_id)
        return version

    async def delete_note(self, user_id: str, note_id: str) -> None:
        """Take a note out of prompt and teacher, and make weights that may hold it again. Raises NoteNotFound."""
        async with self._scheduler.change(user_id):
            is_learned = await self._database.write(lambda s: undo.delete_note(s, user_id, note_id))
        if is_learned:
            self._scheduler.submit_task(user_id, "rebuild")

    async def forget(self, user_id: str) -> None:
        """Remove everything of a person: rows, notes, adapters on disk and in memory. Waits for a running lesson."""
        await self._erase(user_id, erasure.forget_person)

    async def unlearn(self, user_id: str) -> None:
        """Remove what was learned from a person, and leave them, their conversations and the notes they wrote.

        Turn their learning off before. Waits for a running lesson. Raises PersonNotFound.
        """
        await self._erase(user_id, erasure.unlearn_person)

    async def _erase(self, user_id: str, erase: Callable[[Database, str], Awaitable[object]]) -> None:
        async with self._scheduler.change(user_id):
            self._scheduler.drop(user_id)
            self._schedule.drop(user_id)
            self._rebuilds.drop(user_id)
            self._started.foresight.drop(user_id)
            known = await self._database.read(lambda s: versions.history(s, user_id))
            await self._adapters.copies.erase(user_id)  # first: an erasure that fails here has erased nothing
            await erase(self._database, user_id)
            await self._adapters.erase(user_id)
        for version in known:
            ref = self._adapters.ref(version)
            self._started.context.rollouts.drop(ref.name)
            with suppress(EngineError):  # a dead engine remembers nothing
                await self._host.remove_adapter(ref)

    # -- adapters as files ---------------------------------------------------------------------------------------------

    async def export_adapter(self, user_id: str, version: int) -> bytes:
        """Return an accepted version as a zip file. Raises VersionNotFound, VersionStateError, AdapterDamaged."""
        return await self._started.transfer.export(user_id, version)

    async def export_batch(self, user_id: str, version: int) -> bytes:
        """Return what a version was trained on, as a zip file of JSONL and its manifest. Raises as `Transfer.batch`."""
        return await self._started.transfer.batch(user_id, version)

    async def check_adapter(self, content: bytes) -> AdapterPackage:
        """Return what a zip file holds, if it can be taken in here; changes nothing. Raises AdapterRefused."""
        return await self._started.transfer.check(content)

    async def import_adapter(self, user_id: str, package: AdapterPackage) -> int:
        """Make what `check_adapter` gave the person's active version, as their newest lesson. Return its number."""
        async with self._scheduler.change(user_id):
            number = await self._started.transfer.take_in(user_id, package)
        self._scheduler.submit_task(user_id)
        return number

    # -- state -------------------------------------------------------------------------------------------------------

    @property
    def is_ready(self) -> bool:
        """True if an answer can be given now."""
        return self._parts is not None and self._state[0] == "ready" and self._host.is_alive

    @property
    def sampling(self) -> Sampling:
        """The sampling that the model's own files ask for."""
        return Sampling() if self._parts is None else self._parts.sampling

    @property
    def skills(self) -> ModelSkills:
        """The model's ways with tools, and the bytes of its tokens. Only once started."""
        return self._started.generator.skills

    @property
    def learning(self) -> ModelLearning:
        """How the model learns, or why it does not."""
        if self._parts is None:
            return ModelLearning("The model is starting.")
        found = overview(self.calibration, self.config, self._host.trainability)
        return found if found.refusal else replace(found, progress=self._idle_calibration.progress)

    def health(self) -> dict[str, str]:
        """Part -> "ok", "starting" or "down: why"."""
        state, reason = self._state
        if state == "ready" and not self.is_ready:
            state = "starting"
        return {"model": "ok" if self.is_ready else f"{state}: {reason}" if reason else state}

    def loads(self) -> dict[str, EngineLoad]:
        """Engine -> what it has to do and has done; of one machine's once it has started."""
        return {} if self._parts is None else {"engine": self._parts.load(self._scheduler.num_waiting)}

    @staticmethod
    def teacher_view(given: Feedback, answer: Completion, standing: Sequence[str]) -> list[ChatMessage] | None:
        """Return the conversation as the teacher of a lesson saw it, or None if the feedback taught nothing at once."""
        with suppress(ValueError):
            return teacher_messages(answer.messages, standing, Lesson.of(given, answer).hindsight)
        return None

    async def prompt_notes(self, live: Sequence[Note], version: int) -> list[Note]:
        """Return the notes that a person's next answer gets with any question; `version` is their active one."""
        return self._started.generator.notes_in_prompt(live, version) if self._parts else []

    async def note_size(self, text: str) -> tuple[int, int]:
        """Return the tokens of a note in the prompt, and the most that a note may have. Only once it has started."""
        return self._started.generator.note_size(text)

    def _starting(self, progress: Progress, line: str) -> None:
        self._state = ("starting", line)
        progress(line)

    def _on_state(self, state: str, reason: str) -> None:
        self._state = (state, "" if state == "ready" else reason)
