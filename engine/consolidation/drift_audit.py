"""Drift audits: how far a person's adapter has drifted, measured now and then and stored for the operator.

Owns the measurement and its record; `engine.gates.drift` interprets the figures. Invariants: no answer changes; an
audit runs behind every lesson and gives way to the next one; it writes one row of its own kind into the log of updates,
whose status is the level.
"""

import asyncio
import logging
import time
from collections.abc import Sequence
from statistics import fmean

from engine.adapter_ref import ZERO_ADAPTER, AdapterRef
from engine.gates import drift
from engine.gates.drift import Audit, Rewritten, Scored
from engine.prompts.hindsight import with_notes
from engine.requests import ChatMessage
from engine.samples import notes
from engine.samples.context import LearningContext
from engine.samples.pairs import Views, pair, usable
from engine.samples.rollouts import Rollout, conversation
from engine.samples.spacing import spread
from storage.conversations import completions
from storage.learning import drift_audits, updates
from storage.learning import notes as note_rows
from storage.tables import Completion, Note, UpdateRun

logger = logging.getLogger(__name__)
_SCORED_AT_ONCE = 4  # answers in one call into the worker


class DriftAudit:
    """Audits one person's answers after a consolidation, and after some lessons."""

    def __init__(self, context: LearningContext) -> None:
        self._config = context.config
        self._database = context.database
        self._host = context.host
        self._trainer = context.trainer
        self._prompts = context.prompts
        self._rollouts = context.rollouts
        self._active = context.active

    async def look(self, user_id: str) -> Audit | None:
        """Return an audit if one is due, else None. May be cancelled. Raises EngineRestarting, TrainerError."""
        every = self._config.audit.every_versions
        if not await self._database.read(lambda s: drift_audits.is_due(s, user_id, every)):
            return None
        return await self.audit(user_id)

    async def audit(self, user_id: str) -> Audit | None:
        """Measure, store the figures and log what is beyond a bound. Return None if there are too few answers."""
        config, started_s = self._config.audit, time.perf_counter()
        answers = await self._database.read(lambda s: completions.recent(s, user_id, config.num_answers))
        answers = [c for c in answers if self._is_scorable(c)]
        if len(answers) < config.min_answers:
            return None
        ref = await self._active.active(user_id)
        live = await self._database.read(lambda s: note_rows.live(s, user_id))
        given = await self._scored(answers, live, ref)
        rewritten = await self._rewritten(spread(answers, config.num_rewritten), live, ref)
        found = await asyncio.to_thread(drift.audit, given, rewritten, config)
        words = ", ".join(found.reasons)
        run = UpdateRun(
            user_id=user_id,
            kind=drift_audits.KIND,
            status=found.level,
            duration_ms=(time.perf_counter() - started_s) * 1e3,
            parent_version=ref.number,
            gate=found.to_dict(),
            error=words,
        )
        await self._database.write(lambda s: updates.start(s, run))
        logger.log(_SEVERITY[found.level], "drift of %s at v%d: %s", user_id, ref.number, words or "none")
        return found

    def _is_scorable(self, answer: Completion) -> bool:
        num_tokens = len(answer.prompt_token_ids) + len(answer.completion_token_ids)
        return bool(answer.completion_token_ids) and num_tokens <= self._config.gate.max_watched_tokens

    async def _scored(self, answers: Sequence[Completion], live: Sequence[Note], ref: AdapterRef) -> list[Scored]:
        samples = [
            pair(
                "counterfactual",
                Rollout.of(c),
                Views(self._seen_now(conversation(c), live, ref), self._seen_by_base(conversation(c), live)),
                self._prompts,
            )
            for c in answers
        ]
        scores = await self._trainer.score(usable(samples), ref, _SCORED_AT_ONCE)
        return [
            Scored(fmean(s.student_logprobs), fmean(s.teacher_logprobs), s.student_entropy, s.teacher_entropy)
            for s in scores
        ]

    async def _rewritten(self, answers: Sequence[Completion], live: Sequence[Note], ref: AdapterRef) -> list[Rewritten]:
        longest = self._config.learn.max_rollout_tokens
        seen = [self._seen_now(conversation(c), live, ref) for c in answers]
        now = await self._rollouts.greedy_answers(ref, seen, longest)
        base = await self._rollouts.greedy_answers(
            ZERO_ADAPTER, [self._seen_by_base(conversation(c), live) for c in answers], longest
        )
        return [Rewritten(*pair) for pair in zip(now, base, strict=True)]

    def _seen_now(self, messages: list[ChatMessage], live: Sequence[Note], ref: AdapterRef) -> list[ChatMessage]:
        standing = notes.prompt_notes(live, has_adapter=ref.number > 0)
        return self._noted(messages, notes.shown(standing, live, messages))

    def _seen_by_base(self, messages: list[ChatMessage], live: Sequence[Note]) -> list[ChatMessage]:
        return self._noted(messages, live)

    def _noted(self, messages: list[ChatMessage], wanted: Sequence[Note]) -> list[ChatMessage]:
        return with_notes(messages, notes.said(wanted, self._config.note, self._host.max_model_len))


_SEVERITY = {"ok": logging.INFO, "warn": logging.WARNING, "critical": logging.ERROR}
