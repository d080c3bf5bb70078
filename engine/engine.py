"""The engine as the chat side sees it: generate, learn, undo, roll back, forget.

The only class `bot/` talks to. Owns the host, the adapters, the rollouts, the learner and the scheduler. Invariants:
every answer names the adapter version it was made with; a person's notes and adapter reach that person's answers
only; what is acknowledged is in storage.
"""

import asyncio
import math
import time
import uuid
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import aclosing, suppress
from dataclasses import asdict
from typing import Literal

from engine.adapter_ref import ZERO_ADAPTER, AdapterRef
from engine.adapters import undo
from engine.adapters.active import ActiveAdapters
from engine.adapters.store import AdapterStore
from engine.adapters.transfer import Transfer
from engine.adapters.undo import NothingToUndo, UndoResult
from engine.adapters.zip_format import AdapterPackage
from engine.config import EngineConfig
from engine.consolidation.approved_answers import ApprovedAnswers
from engine.consolidation.better_answers import BetterAnswers
from engine.consolidation.consolidator import LEARNING_IS_OFF, Consolidator
from engine.consolidation.drift_audit import DriftAudit
from engine.consolidation.rebuild import RebuildCheck
from engine.consolidation.rehearsal import Rehearsals
from engine.consolidation.schedule import PAUSED, ConsolidationSchedule
from engine.consolidation.waiters import Waiters
from engine.errors import EngineError
from engine.generation.external_answer import given
from engine.generation.likelihood import likelihood
from engine.host.model_files import fingerprint
from engine.host.trainer_client import TrainerClient
from engine.host.vllm_host import VllmHost
from engine.host.vllm_types import HostChunk
from engine.learning.candidates import Candidates
from engine.learning.learner import Learner
from engine.learning.scheduler import MAX_ATTEMPTS, UpdateScheduler
from engine.prompts.bank import load_bank
from engine.prompts.builder import PromptBuilder
from engine.prompts.hindsight import with_notes
from engine.prompts.reasoning import Reasoning, ReasoningParts
from engine.requests import (
    TOOLS,
    ConsolidationOutcome,
    Delta,
    GenerateRequest,
    GenerateResult,
    LearnOutcome,
    Likelihood,
    Sampling,
)
from engine.samples import notes
from engine.samples.context import LearningContext
from engine.samples.facts import Facts
from engine.samples.rollouts import RolloutStore
from storage.database import Database, Session
from storage.learning import feedback, updates, versions
from storage.learning import notes as note_rows
from storage.people import erasure, people
from storage.tables import Feedback, FeedbackKind, FeedbackStatus, Note, NoteState, UpdateRun

Progress = Callable[[str], None]
_TRAINS_AT_ONCE = (FeedbackKind.CORRECTION, FeedbackKind.IDEAL)
_OPEN = (FeedbackStatus.PENDING, FeedbackStatus.TRAINING)
_ENDED: dict[str, Literal["learned", "kept", "rejected"]] = {
    FeedbackStatus.LEARNED: "learned",
    FeedbackStatus.KEPT: "kept",
    FeedbackStatus.UNDONE: "kept",
    FeedbackStatus.REJECTED: "rejected",
    FeedbackStatus.FAILED: "rejected",
}


class Engine:
    """Generation and learning for everybody."""

    def __init__(self, config: EngineConfig, database: Database) -> None:
        """Nothing is loaded before `start`."""
        self.config = config
        self._database = database
        self._state = ("starting", "")
        self._host = VllmHost(config, self._on_state)
        self._adapters = AdapterStore(config.data_dir, database)
        self._rebuilds = Waiters[ConsolidationOutcome]()
        self._answered_s = -math.inf  # when somebody was last heard, by the monotonic clock

    async def start(self, progress: Progress = lambda _line: None) -> None:
        """Starts vLLM, warms it up, sweeps what a crash left. Raises ModelNotFoundError or EngineStartError."""
        await self._database.write(_give_up_candidates)
        await self._adapters.sweep()
        await self._host.start(progress)
        self._prompts = PromptBuilder(
            self._host.tokenizer, self._host.max_model_len, is_thinking=self.config.is_thinking
        )
        folder = self._host.model_folder
        base_model = await asyncio.to_thread(fingerprint, folder)
        self._served = ActiveAdapters(base_model, self._database, self._adapters, self._host)
        bank = load_bank(folder)
        self._rollouts = RolloutStore(self._host, self._prompts, bank, self.config.learn)
        self._transfer = Transfer(self.config, self._database, self._host, self._adapters, self._served)
        self._context = context = LearningContext(
            self.config,
            self._database,
            self._host,
            TrainerClient(self._host),
            self._prompts,
            self._rollouts,
            bank,
            self._served,
        )
        candidates, facts = Candidates(context, self._adapters), Facts(context)
        self._learner = Learner(context, candidates, facts)
        self._auditor = DriftAudit(self.config, self._database, self._host, self._prompts, self._rollouts, self._served)
        self._consolidator = self._new_consolidator(candidates, facts)
        self._sleep = ConsolidationSchedule(
            self.config.sleep, self._database, self._consolidator.consolidate, self._is_idle
        )
        self._scheduler = UpdateScheduler(
            self._prepare,
            self._learner.learn,
            {"settle": self._settle, "rebuild": self._rebuild, "consolidate": self._sleep.run},
            self._park,
        )
        self._scheduler.start()
        self._watcher = asyncio.create_task(self._sleep.watch(self._submit_consolidation), name="heed-sleep")

    async def stop(self) -> None:
        """Ends updates and vLLM; unfinished updates stay pending in storage."""
        if hasattr(self, "_watcher"):
            self._watcher.cancel()
            await asyncio.gather(self._watcher, return_exceptions=True)
            await self._scheduler.stop()
            self._sleep.drop()
            self._rebuilds.drop()
            await self._served.stop()
        await self._host.stop()

    def _new_consolidator(self, candidates: Candidates, facts: Facts) -> Consolidator:
        config, database, prompts, rollouts = self.config, self._database, self._prompts, self._rollouts
        max_len = self._host.max_model_len
        rehearsals = Rehearsals(config, database, self._host, prompts, rollouts, facts)
        gold = ApprovedAnswers(config, database, prompts, rollouts, max_len)
        curriculum = BetterAnswers(config, database, self._host, prompts, rollouts)
        rebase = RebuildCheck(config, database, self._host, prompts, rollouts)
        return Consolidator(
            config, database, self._served, candidates, rehearsals, gold, curriculum, facts, rebase, max_len
        )

    async def _settle(self, user_id: str) -> None:
        await self._learner.settle(user_id)
        await self._auditor.look(user_id)

    async def _prepare(self) -> None:
        """The first update should not wait for its rollouts either."""
        await self._rollouts.anchors(ZERO_ADAPTER, 1)
        await self._learner.warm_up(await self._rollouts.prepare(ZERO_ADAPTER, []))

    # -- generation --------------------------------------------------------------------------------------------------

    async def generate(self, request: GenerateRequest) -> AsyncGenerator[Delta, None]:
        """Streams an answer; the last delta carries the result. Raises PromptTooLongError or EngineRestarting."""
        asked_s = time.perf_counter()
        ref, live = await self._served_to(request)
        with self._served.using(ref):
            # Closed with this one: who leaves ends the stream at once.
            async with aclosing(self._answer(request, ref, live, asked_s)) as deltas:
                async for delta in deltas:
                    yield delta

    async def _answer(
        self, request: GenerateRequest, ref: AdapterRef, live: Sequence[Note], asked_s: float
    ) -> AsyncGenerator[Delta, None]:
        standing = self._said(live, ref)
        self._answered_s = time.monotonic()
        longest = request.sampling.max_tokens
        prompt = self._prompts.prompt_token_ids(
            with_notes(request.messages, standing),
            reserve_tokens=min(longest or 64, self._host.max_model_len // 2),
            tools=request.tools,
        )
        room = self._prompts.room_for(prompt)
        sampling = Sampling(**asdict(request.sampling) | {"max_tokens": min(longest or room, room)})
        answer = _Answer(request, standing, prompt, ref.number, sampling, asked_s, self._prompts.opens_thoughts(prompt))
        stream = self._host.generate(prompt, sampling, ref, f"chat-{uuid.uuid4().hex}", request.priority)
        async with aclosing(stream):
            async for chunk in stream:
                self._answered_s = time.monotonic()
                yield answer.take(chunk)

    async def score(self, request: GenerateRequest, answer: str) -> Likelihood:
        """How likely `answer` is where `request` asks. Raises PromptTooLongError or EngineRestarting."""
        ref, live = await self._served_to(request)
        with self._served.using(ref):
            messages = with_notes(request.messages, self._said(live, ref))
            return await likelihood(self._host, self._prompts, messages, answer, ref)

    async def given(self, request: GenerateRequest, text: str) -> GenerateResult:
        """`text` as the answer to `request`, as if heed had written it. Raises PromptTooLongError, EngineRestarting."""
        ref, live = await self._served_to(request)
        with self._served.using(ref):
            return await given(self._host, self._prompts, request, self._said(live, ref), text, ref)

    async def _served_to(self, request: GenerateRequest) -> tuple[AdapterRef, list[Note]]:
        """The adapter a request is answered with, and the notes that hold beside it."""
        if request.adapter == "base":
            return ZERO_ADAPTER, []
        ref, live = await self._served.active_with_notes(request.user_id)
        return ref, live if request.notes == "auto" else []

    def _said(self, live: Sequence[Note], ref: AdapterRef) -> list[str]:
        wanted = notes.prompt_notes(live, has_adapter=ref.number > 0)
        return notes.said(wanted, self.config.note, self._host.max_model_len)

    # -- learning ----------------------------------------------------------------------------------------------------

    async def learn(self, feedback_id: str) -> LearnOutcome:
        """What becomes of committed feedback; returns when its update has ended.

        Feedback that has ended before is not taken up again. Raises FeedbackNotFound.
        """
        outcome = await self._take_up(await self._database.read(lambda s: feedback.get(s, feedback_id)))
        return outcome if isinstance(outcome, LearnOutcome) else await asyncio.shield(outcome)

    async def _take_up(self, row: Feedback) -> "LearnOutcome | asyncio.Future[LearnOutcome]":
        """Ends feedback that needs no update, queues the rest."""
        user = await self._database.read(lambda s: people.get(s, row.user_id))
        if row.status not in _OPEN:
            return LearnOutcome(row.id, _ENDED[row.status], user.active_version, reason=row.reason)
        if row.kind == FeedbackKind.NOTE:
            return await self._keep_note(row, user.active_version)
        if row.kind not in _TRAINS_AT_ONCE or row.completion_id is None:
            return await self._keep(row, user.active_version, "")
        if not user.is_learning:
            return await self._keep(row, user.active_version, LEARNING_IS_OFF)
        return self._scheduler.submit(row.user_id, row.id)

    async def resume_pending(self) -> int:
        """After a start: takes up the feedback that an earlier heed left pending; returns how many pieces."""

        def interrupted(s: Session) -> list[Feedback]:
            updates.fail_interrupted(s)
            note_rows.requeue_interrupted(s)
            feedback.requeue_interrupted(s, max_attempts=MAX_ATTEMPTS)
            return feedback.pending(s)

        waiting = await self._database.write(interrupted)
        for row in waiting:
            await self._take_up(row)
        for user_id in await self._sleep.resume():
            self._submit_consolidation(user_id)
        return len(waiting)

    async def settled(self) -> None:
        """Returns when every update and every probe has ended."""
        await self._scheduler.idle()

    async def _keep_note(self, row: Feedback, version: int) -> LearnOutcome:
        text = " ".join(row.text.split())
        note = Note(
            user_id=row.user_id,
            feedback_id=row.id,
            text=text,
            state=NoteState.IN_PROMPT,
            num_tokens=self._prompts.count(f"- {text}\n"),
        )
        kept = await self._database.write(lambda s: note_rows.add(s, note))
        outcome = await self._keep(row, version, "")
        return LearnOutcome(**asdict(outcome) | {"note": kept.text, "note_id": kept.id})

    async def _keep(self, row: Feedback, version: int, reason: str) -> LearnOutcome:
        await self._database.write(lambda s: feedback.set_status(s, row.id, FeedbackStatus.KEPT, reason))
        return LearnOutcome(row.id, "kept", version, reason=reason)

    async def _park(self, feedback_id: str, reason: str) -> LearnOutcome:
        """Gives an update up after its last attempt; an admin finds it among the failed ones."""
        row = await self._database.write(lambda s: feedback.set_status(s, feedback_id, FeedbackStatus.FAILED, reason))
        version = await self._database.read(lambda s: people.get(s, row.user_id).active_version)
        return LearnOutcome(feedback_id, "rejected", version, reason=f"the update failed: {reason}")

    # -- consolidating -----------------------------------------------------------------------------------------------

    async def consolidate(self, user_id: str) -> ConsolidationOutcome:
        """Takes in what is new about a person now, behind all lessons; returns when that has ended.

        Raises PersonNotFound.
        """
        user = await self._database.read(lambda s: people.get(s, user_id))
        if self._sleep.is_paused:
            return ConsolidationOutcome("kept", user.active_version, PAUSED)
        outcome = self._sleep.ask(user_id)
        self._submit_consolidation(user_id)
        return await _awaited(outcome)

    async def rebuild(self, user_id: str) -> ConsolidationOutcome:
        """Makes a person's adapter again from zero, behind all lessons; returns when that has ended.

        Raises PersonNotFound.
        """
        user = await self._database.read(lambda s: people.get(s, user_id))
        if self._sleep.is_paused or not user.is_learning:
            return ConsolidationOutcome("kept", user.active_version, PAUSED if user.is_learning else LEARNING_IS_OFF)
        outcome = self._rebuilds.ask(user_id)
        self._scheduler.submit_chore(user_id, "rebuild")
        return await _awaited(outcome)

    async def _rebuild(self, user_id: str) -> None:
        """The chore, whoever asked for it. May be cancelled at any time."""
        try:
            self._rebuilds.answer(user_id, await self._consolidator.rebuild(user_id))
        except Exception:
            self._rebuilds.drop(user_id)  # nobody waits for ever; the scheduler counts it
            raise

    def pause_consolidation(self, is_paused: bool) -> None:
        """Begins no consolidation any more and breaks off the one that runs, or lets them begin again."""
        self._sleep.is_paused = is_paused
        self._scheduler.hold(is_paused)

    def _submit_consolidation(self, user_id: str) -> None:
        self._scheduler.submit_chore(user_id, "consolidate")

    def _is_idle(self) -> bool:
        """Whether nobody is being answered, and nobody was for a while."""
        return not self._host.num_running and time.monotonic() - self._answered_s >= self.config.sleep.idle_s

    # -- taking back -------------------------------------------------------------------------------------------------

    async def undo(self, user_id: str) -> UndoResult:
        """Takes back the last lesson, version and note together; waits for one that runs. Raises NothingToUndo."""
        async with self._scheduler.turn(user_id):
            result = await self._database.write(lambda s: undo.undo(s, user_id))
        self._scheduler.submit_chore(user_id, "rebuild" if result.must_rebuild else "settle")
        return result

    async def take_back(self, complaint: Feedback, version: int, reason: str) -> UndoResult | None:
        """Takes the lesson of a version back for a reason that is kept; None where that is not active any more."""
        async with self._scheduler.turn(complaint.user_id):
            result = await self._database.write(lambda s: undo.take_back(s, complaint, version, reason))
        if result is not None:
            self._scheduler.submit_chore(complaint.user_id, "rebuild" if result.must_rebuild else "settle")
        return result

    async def rollback(self, user_id: str, version: int) -> int:
        """Makes an accepted version active, 0 for the base, with the lessons on its path and no others.

        Raises VersionNotFound, VersionPruned, VersionStateError.
        """
        async with self._scheduler.turn(user_id):
            await self._database.write(lambda s: undo.return_to(s, user_id, version))
        self._scheduler.submit_chore(user_id)
        return version

    async def delete_note(self, user_id: str, note_id: str) -> None:
        """Takes a note out of prompt and teacher; where weights may hold it, they are made again without it.

        Raises NoteNotFound.
        """
        async with self._scheduler.turn(user_id):
            is_learned = await self._database.write(lambda s: undo.delete_note(s, user_id, note_id))
        if is_learned:
            self._scheduler.submit_chore(user_id, "rebuild")

    async def forget(self, user_id: str) -> None:
        """Removes everything of a person: rows, notes, adapters on disk and in memory. Waits for a running lesson."""
        await self._erase(user_id, erasure.forget_person)

    async def unlearn(self, user_id: str) -> None:
        """Removes what was learned from a person, and leaves them, their conversations and the notes they wrote.

        Turn their learning off before. Waits for a running lesson. Raises PersonNotFound.
        """
        await self._erase(user_id, erasure.unlearn_person)

    async def _erase(self, user_id: str, erase: Callable[[Database, str], Awaitable[object]]) -> None:
        async with self._scheduler.turn(user_id):
            self._scheduler.drop(user_id)
            self._sleep.drop(user_id)
            self._rebuilds.drop(user_id)
            known = await self._database.read(lambda s: versions.history(s, user_id))
            await erase(self._database, user_id)
            await self._adapters.erase(user_id)
        for version in known:
            ref = self._adapters.ref(version)
            self._rollouts.drop(ref.name)
            with suppress(EngineError):  # a dead engine remembers nothing
                await self._host.remove_adapter(ref)

    # -- adapters as files ---------------------------------------------------------------------------------------------

    async def export_adapter(self, user_id: str, version: int) -> bytes:
        """An accepted version as a zip file. Raises VersionNotFound, VersionStateError, AdapterDamaged."""
        return await self._transfer.export(user_id, version)

    async def export_batch(self, user_id: str, version: int) -> bytes:
        """What a version was trained on, as a zip file of JSONL and its manifest. Raises as `Transfer.batch`."""
        return await self._transfer.batch(user_id, version)

    async def check_adapter(self, content: bytes) -> AdapterPackage:
        """What a zip file holds, if it can be taken in here; changes nothing. Raises AdapterRefused."""
        return await self._transfer.check(content)

    async def import_adapter(self, user_id: str, package: AdapterPackage) -> int:
        """Makes what `check_adapter` gave the person's active version, as their newest lesson; returns its number."""
        async with self._scheduler.turn(user_id):
            number = await self._transfer.take_in(user_id, package)
        self._scheduler.submit_chore(user_id)
        return number

    # -- state -------------------------------------------------------------------------------------------------------

    @property
    def is_ready(self) -> bool:
        """Whether an answer can be given now."""
        return self._state[0] == "ready" and self._host.is_alive

    @property
    def model_name(self) -> str:
        """The configured model."""
        return self.config.model

    @property
    def num_waiting_updates(self) -> int:
        """Lessons queued or running."""
        return self._scheduler.num_waiting if hasattr(self, "_scheduler") else 0

    def health(self) -> dict[str, str]:
        """Part -> "ok", "starting" or "down: why"."""
        state, reason = self._state
        return {"model": "ok" if self.is_ready else f"{state}: {reason}" if reason else state}

    async def update_log(self, user_id: str, limit: int) -> list[UpdateRun]:
        """The person's updates, newest first."""
        return await self._database.read(lambda s: updates.recent(s, user_id, limit))

    def _on_state(self, state: str, reason: str) -> None:
        self._state = (state, "" if state == "ready" else reason)


class _Answer:
    """Collects a stream into a result."""

    def __init__(
        self,
        request: GenerateRequest,
        standing: list[str],
        prompt: list[int],
        version: int,
        sampling: Sampling,
        asked_s: float,
        is_thinking: bool,
    ) -> None:
        self._request, self._standing, self._prompt, self._version = request, standing, prompt, version
        self._sampling = sampling
        self._stream = Reasoning(is_open=is_thinking)
        self._parts: list[ReasoningParts] = []
        self._token_ids: list[int] = []
        self._logprobs: list[float] = []
        self._asked_s = asked_s
        self._first_s = 0.0

    def take(self, chunk: HostChunk) -> Delta:
        """One chunk as a delta; the last one with the result."""
        if not self._token_ids:
            self._first_s = time.perf_counter() - self._asked_s
        parts = self._stream.take(chunk.text)
        if chunk.finish_reason:
            last = self._stream.rest()
            parts = ReasoningParts(parts.reasoning + last.reasoning, parts.text + last.text)
        self._parts.append(parts)
        self._token_ids += chunk.token_ids
        self._logprobs += chunk.logprobs
        result = self._result(chunk) if chunk.finish_reason else None
        return Delta(parts.text, chunk.token_ids, chunk.logprobs, chunk.top_logprobs, result, parts.reasoning)

    def _result(self, chunk: HostChunk) -> GenerateResult:
        return GenerateResult(
            text="".join(parts.text for parts in self._parts),
            messages=self._request.messages,
            notes=self._standing,
            prompt_token_ids=self._prompt,
            completion_token_ids=self._token_ids,
            logprobs=self._logprobs,
            adapter_version=self._version,
            sampling=asdict(self._sampling) | ({TOOLS: self._request.tools} if self._request.tools else {}),
            finish_reason=chunk.finish_reason or "",
            num_cached_tokens=chunk.num_cached_tokens,
            time_to_first_token_s=self._first_s,
            duration_s=time.perf_counter() - self._asked_s,
            reasoning="".join(parts.reasoning for parts in self._parts),
        )


async def _awaited(outcome: "asyncio.Future[ConsolidationOutcome]") -> ConsolidationOutcome:
    """What became of a chore that was asked for; whoever waits may leave, and it goes on."""
    await asyncio.wait({outcome})
    if outcome.cancelled():
        return ConsolidationOutcome("kept", 0, "it was dropped: it failed, the person is gone, or heed ends")
    return outcome.result()


def _give_up_candidates(s: Session) -> None:
    """Candidates whose update died with an earlier heed: nothing will ever accept them."""
    for version in versions.unfinished(s):
        versions.reject(s, version.user_id, version.number)


__all__ = ["Engine", "NothingToUndo", "UndoResult"]
