"""One update from feedback to a new active version: the steps, in order.

Owns the sequence note -> rollouts -> training in short calls -> gate -> files -> pointer flip, and its record in
storage. Invariants: nothing is active before it is on disk and its gate has passed; a failure leaves the person's
active version as it was; between two calls into the worker vLLM decodes.
"""

import asyncio
import logging
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from engine import lessons, notes
from engine.adapter_ref import ZERO_ADAPTER, AdapterRef
from engine.adapters import AdapterStore
from engine.config import EngineConfig, LearnConfig
from engine.errors import TrainerError
from engine.gates import Measurements, Verdict, judge
from engine.lessons import Lesson
from engine.prompts import PromptBuilder
from engine.requests import LearnOutcome
from engine.rollouts import Rollout, RolloutStore
from engine.serving import ServedAdapters
from engine.vllm_host import VllmHost
from storage import completions, feedback, updates, versions
from storage import notes as note_rows
from storage.database import Database, Session
from storage.tables import Completion, Feedback, FeedbackStatus, Note, NoteState, UpdateRun

log = logging.getLogger(__name__)
_RECENT = 16  # completions looked at for a person's own prompts


@dataclass
class _Update:
    """What one update knows while it runs."""

    row: UpdateRun
    lesson: Lesson
    learn: LearnConfig
    parent: AdapterRef
    live: list[Note]
    note: Note | None = None
    phases_ms: dict[str, float] = field(default_factory=dict)
    started_s: float = field(default_factory=time.perf_counter)

    def lap(self, phase: str) -> None:
        """Books the time since the last lap under a phase."""
        now_s = time.perf_counter()
        booked_ms = sum(self.phases_ms.values())
        self.phases_ms[phase] = self.phases_ms.get(phase, 0.0) + (now_s - self.started_s) * 1e3 - booked_ms

    @property
    def duration_ms(self) -> float:
        """Milliseconds since the update began."""
        return (time.perf_counter() - self.started_s) * 1e3


class Learner:
    """Runs updates, one at a time; the scheduler sees to that."""

    def __init__(
        self,
        config: EngineConfig,
        database: Database,
        host: VllmHost,
        adapters: AdapterStore,
        prompts: PromptBuilder,
        rollouts: RolloutStore,
        served: ServedAdapters,
    ) -> None:
        """Everything an update needs, each built by the engine."""
        self._config = config
        self._database = database
        self._host = host
        self._adapters = adapters
        self._prompts = prompts
        self._rollouts = rollouts
        self._served = served

    # -- one lesson --------------------------------------------------------------------------------------------------

    async def learn(self, feedback_id: str) -> LearnOutcome:
        """Trains on one correction or ideal. Raises EngineRestarting or TrainerError when the update cannot finish."""
        row = await self._database.write(lambda s: feedback.begin_training(s, feedback_id))
        update = await self._begin(row)
        counterfactuals = await self._counterfactuals(update)
        update.lap("rollouts")
        moved = await self._moved(update, counterfactuals)
        update.lap("standing")
        await self._take_note(update, moved)
        trained = await self._train(update, counterfactuals)
        if trained["divergence_before"] < self._config.learn.min_divergence:
            return await self._nothing_to_learn(update, trained)
        return await self._conclude(update, trained)

    async def _begin(self, row: Feedback) -> _Update:
        assert row.completion_id is not None
        completion_id = row.completion_id
        completion = await self._database.read(lambda s: completions.get(s, row.user_id, completion_id))
        live = await self._database.read(lambda s: note_rows.live(s, row.user_id))
        parent = await self._served.active(row.user_id)
        run = UpdateRun(user_id=row.user_id, feedback_id=row.id, kind=row.kind, parent_version=parent.number)
        started = await self._database.write(lambda s: updates.start(s, run))
        learn = self._config.learn.merged(row.training)
        return _Update(started, Lesson.of(row, completion), learn, parent, live)

    async def _counterfactuals(self, update: _Update) -> list[Rollout]:
        recent = await self._recent(update.lesson.user_id)
        others = [c for c in recent if c.messages != update.lesson.completion.messages]
        return await self._rollouts.take(update.parent, others, update.learn.num_counterfactuals)

    async def _recent(self, user_id: str) -> list[Completion]:
        return await self._database.read(lambda s: completions.recent(s, user_id, _RECENT))

    async def _moved(self, update: _Update, counterfactuals: Sequence[Rollout]) -> list[float]:
        """How far the feedback alone moves the teacher, nats per token: the corrected prompt, then the others."""
        pairs = lessons.moves(update.lesson, self._earlier_texts(update), counterfactuals, self._prompts)
        return [score["divergence"] for score in await self._scores(pairs)]

    def _earlier_texts(self, update: _Update) -> list[str]:
        return [n.text for n in update.live if n.feedback_id != update.lesson.feedback_id]

    async def _scores(self, pairs: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
        """Scores under the base model: in one call, or one by one while somebody is reading a stream."""
        size = 1 if self._host.num_running else len(pairs)
        scores: list[dict[str, Any]] = []
        while len(scores) < len(pairs):
            part = list(pairs[len(scores) : len(scores) + size])
            scores += _checked(await self._host.rpc("heed_score", part, None))["scores"]
        return scores

    async def _take_note(self, update: _Update, moved: Sequence[float]) -> None:
        """Makes the lesson a standing note when the feedback moves the teacher on other prompts too."""
        earlier = [n for n in update.live if n.feedback_id == update.lesson.feedback_id]
        if earlier:
            update.note = earlier[0]
        elif is_standing(moved, self._config.note.standing_share, self._config.learn.min_divergence):
            text = " ".join(update.lesson.note_text.split())
            note = Note(
                user_id=update.lesson.user_id,
                feedback_id=update.lesson.feedback_id,
                text=text,
                state=NoteState.LEARNING,
                num_tokens=self._prompts.count(f"- {text}\n"),
            )
            update.note = await self._database.write(lambda s: note_rows.add(s, note))

    async def warm_up(self, rollouts: Sequence[Rollout]) -> None:
        """One step of an update that is thrown away: the first real one should not pay for what is made only once."""
        learn = self._config.learn.merged({"steps": 1})
        spec = {
            "update_id": "warm-up",
            "parent": None,
            "samples": [sample | {"kind": "correction"} for sample in lessons.anchor_samples(rollouts)],
            "learn": learn.to_dict(),
        }
        await self._advance_to_end(spec)
        await self._host.rpc("heed_close_update", "warm-up")

    # -- training ----------------------------------------------------------------------------------------------------

    async def _train(self, update: _Update, counterfactuals: Sequence[Rollout]) -> dict[str, Any]:
        anchors = await self._rollouts.anchors(ZERO_ADAPTER, update.learn.num_anchors)
        texts = self._earlier_texts(update)
        taught = lessons.samples(update.lesson, texts, counterfactuals, self._prompts)
        spec = {
            "update_id": update.row.id,
            "parent": update.parent.to_dict(),
            "samples": [*taught, *lessons.anchor_samples(anchors)],
            "learn": update.learn.to_dict(),
        }
        record = await self._advance_to_end(spec)
        update.lap("train")
        return record

    async def _advance_to_end(self, spec: dict[str, Any]) -> dict[str, Any]:
        _checked(await self._host.rpc("heed_open_update", spec))
        record: dict[str, Any] = {"done": False}
        while not record["done"]:
            record = _checked(await self._host.rpc("heed_advance", spec["update_id"], self._budget_ms()))
            await asyncio.sleep(0)  # a decode step goes between
        return record

    def _budget_ms(self) -> float:
        """How long the next call may hold up decoding: short while somebody is reading a stream."""
        host = self._config.host
        return host.busy_budget_ms if self._host.num_running else host.idle_budget_ms

    async def _nothing_to_learn(self, update: _Update, trained: dict[str, Any]) -> LearnOutcome:
        await self._host.rpc("heed_close_update", update.row.id)
        reason = "this did not tell me what to change"
        if update.note is not None:
            note_id = update.note.id
            await self._database.write(lambda s: note_rows.set_state(s, note_id, NoteState.IN_PROMPT))
        await self._finish(update, trained, "skipped", FeedbackStatus.KEPT, reason)
        return self._outcome(update, trained, "kept", update.parent.number, reason=reason)

    async def _conclude(self, update: _Update, trained: dict[str, Any]) -> LearnOutcome:
        user_id, lesson = update.lesson.user_id, update.lesson
        version = await self._database.write(
            lambda s: versions.allocate(
                s, user_id, update.parent.number, self._served.base_model, lesson.feedback_id, update.row.id
            )
        )
        assert version.lora_int_id is not None
        ref = self._adapters.ref(version)
        published = _checked(await self._host.rpc("heed_publish", update.row.id, version.lora_int_id, ref.name))
        await self._host.rpc("heed_close_update", update.row.id)
        verdict = judge(_measurements(trained, published), self._config.gate)
        if not verdict.is_accepted:
            await self._database.write(lambda s: versions.reject(s, user_id, version.number))
            return await self._rejected(update, trained, verdict)
        sha256, size_bytes = await self._adapters.write(version, published["tensors"], published["config"])
        await self._served.publish(ref)
        update.lap("publish")
        await self._database.write(lambda s: versions.accept(s, user_id, version.number, sha256, size_bytes))
        update.lap("activate")
        await self._finish(update, trained, "accepted", FeedbackStatus.LEARNED, "", verdict, version.number)
        self._rollouts.drop(update.parent.name if update.parent.number else "")
        return self._outcome(update, trained, "learned", version.number, verdict=verdict)

    async def _rejected(self, update: _Update, trained: dict[str, Any], verdict: Verdict) -> LearnOutcome:
        if update.note is not None:
            note_id = update.note.id
            await self._database.write(lambda s: note_rows.set_state(s, note_id, NoteState.IN_PROMPT))
        await self._finish(update, trained, "rejected", FeedbackStatus.REJECTED, verdict.reason, verdict)
        return self._outcome(update, trained, "rejected", update.parent.number, verdict=verdict, reason=verdict.reason)

    async def _finish(
        self,
        update: _Update,
        trained: dict[str, Any],
        status: str,
        feedback_status: FeedbackStatus,
        reason: str,
        verdict: Verdict | None = None,
        version: int | None = None,
    ) -> None:
        fields = {
            "status": status,
            "duration_ms": update.duration_ms,
            "phases_ms": update.phases_ms,
            "steps": trained["steps"],
            "divergence_before": trained["divergence_before"],
            "divergence_after": trained["divergence_after"],
            "gate": verdict.to_dict() if verdict else None,
            "heat": self._heat(trained),
            "version": version,
            "error": reason,
        }

        def work(s: Session) -> None:
            updates.finish(s, update.row.id, **fields)
            feedback.set_status(s, update.lesson.feedback_id, feedback_status, reason)

        await self._database.write(work)

    def _heat(self, trained: dict[str, Any]) -> list[tuple[str, float]]:
        return [(self._prompts.token_text(int(token)), round(value, 3)) for token, value in trained.get("heat", [])]

    def _outcome(
        self,
        update: _Update,
        trained: dict[str, Any],
        status: Any,
        version: int,
        *,
        verdict: Verdict | None = None,
        reason: str = "",
    ) -> LearnOutcome:
        return LearnOutcome(
            feedback_id=update.lesson.feedback_id,
            status=status,
            adapter_version=version,
            note=update.note.text if update.note else None,
            note_id=update.note.id if update.note else None,
            reason=reason,
            steps=trained["steps"],
            divergence_before=trained["divergence_before"],
            divergence_after=trained["divergence_after"],
            duration_ms=update.duration_ms,
            phases_ms=update.phases_ms,
            gate=verdict.to_dict() if verdict else {},
            heat=self._heat(trained),
            update_id=update.row.id,
        )

    # -- after a lesson ----------------------------------------------------------------------------------------------

    async def settle(self, user_id: str) -> None:
        """Prepares the next update's rollouts and probes where each note lives. May be cancelled at any time."""
        ref = await self._served.active(user_id)
        fresh = await self._rollouts.prepare(ref, await self._recent(user_id))
        live = await self._database.read(lambda s: note_rows.live(s, user_id))
        if not ref.number:
            return
        for note in live:
            await self._probe(note, live, fresh[: self._config.note.probe_rollouts], ref)

    async def _probe(self, note: Note, live: Sequence[Note], fresh: Sequence[Rollout], ref: AdapterRef) -> None:
        scores = [await self._scores(notes.probe_samples(note, live, rollout, self._prompts)) for rollout in fresh]
        if not scores:
            return
        probe = notes.probe_of(scores)
        state = notes.next_state(note, probe, self._config.note, is_newest=note.id == live[-1].id)
        share = notes.held_share(probe, self._config.note)
        learned = ref.number if state == NoteState.IN_WEIGHTS else None
        await self._database.write(
            lambda s: note_rows.set_state(s, note.id, state, probe=share, learned_version=learned)
        )


def is_standing(moved: Sequence[float], share: float, floor: float) -> bool:
    """Whether feedback is about more than one answer: it moves the teacher on other prompts by at least `share` of
    what it moves on the corrected one, and by more than `floor` nats per token."""
    first, *others = moved
    if not others:
        return first > floor
    return sum(others) / len(others) >= max(share * first, floor)


def _measurements(trained: dict[str, Any], published: dict[str, Any]) -> Measurements:
    return Measurements(
        is_finite=published["finite"] and trained["finite"],
        update_norm=published["update_norm"],
        steps=trained["steps"],
        divergence_before=trained["divergence_before"],
        divergence_after=trained["divergence_after"],
        anchor_divergence=trained.get("anchor_divergence_after"),
    )


def _checked(record: dict[str, Any]) -> dict[str, Any]:
    if not record["ok"]:
        raise TrainerError(record["error"])
    return record
