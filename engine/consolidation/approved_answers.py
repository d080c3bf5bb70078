"""A person's approved answers, written again by a candidate before it becomes active (`engine.gates.texts`).

Owns the approved answers of one consolidation. Invariant: an answer that the active version does not give any more,
because the person has asked for something else since, says nothing about the candidate and is left out.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

from engine.adapter_ref import AdapterRef
from engine.config import GateConfig
from engine.gates.candidate import Verdict
from engine.gates.texts import TextVerdict, Written, judge_texts
from engine.prompts.hindsight import with_notes
from engine.requests import ChatMessage
from engine.samples import notes
from engine.samples.context import LearningContext
from engine.samples.rollouts import conversation
from storage.conversations import completions
from storage.database import Session
from storage.tables import Completion, Note

ROOM = 1.5  # times an approved answer's tokens that the candidate may take; one that needs more does not end
_ANSWERS = 200  # newest answers looked through
REASONS = {
    "entities kept": "Answers you liked would have lost facts.",
    "nothing invented": "Answers you liked would have gained made-up facts.",
    "form kept": "Answers you liked would have lost their form.",
}


@dataclass(frozen=True)
class Gold:
    """An approved answer, and the conversation with the notes that would be in the prompt now."""

    messages: list[ChatMessage]
    text: str
    num_tokens: int


class ApprovedAnswers:
    """Checks of a version against the answers a person approved."""

    def __init__(self, context: LearningContext) -> None:
        self._config = context.config
        self._host = context.host
        self._prompts = context.prompts
        self._rollouts = context.rollouts

    async def held(self, found: Sequence[Completion], live: Sequence[Note], parent: AdapterRef) -> list[Gold]:
        """Return those of the approved answers `found` that the person's version still gives."""
        standing = notes.prompt_notes(live, has_adapter=parent.number > 0)
        gold = [self._gold(c, notes.shown(standing, live, c.messages)) for c in found]
        written = await self._written(gold, parent)
        return [g for g, w in zip(gold, written, strict=True) if judge_texts([w], self._config.gate).is_accepted]

    def _gold(self, approved: Completion, seen: Sequence[Note]) -> Gold:
        said = notes.said(seen, self._config.note, self._host.max_model_len)
        return Gold(with_notes(conversation(approved), said), approved.text, len(approved.completion_token_ids))

    async def judged(self, gold: Sequence[Gold], ref: AdapterRef, verdict: Verdict) -> Verdict:
        """Return the verdict of the other gates with that of the texts; unchanged if there are no texts."""
        if not gold:
            return verdict
        return with_texts(verdict, judge_texts(await self._written(gold, ref), self._config.gate))

    async def _written(self, gold: Sequence[Gold], ref: AdapterRef) -> list[Written]:
        return await asyncio.gather(*(self._written_again(g, ref) for g in gold))

    async def _written_again(self, gold: Gold, ref: AdapterRef) -> Written:
        longest = round(ROOM * gold.num_tokens) + 1
        (answer,) = await self._rollouts.greedy_answers(ref, [gold.messages], longest)
        return Written(gold.text, self._prompts.text(answer), is_ended=len(answer) < longest)


def approved(s: Session, user_id: str, count: int, gate: GateConfig) -> list[Completion]:
    """Return the newest approved answers that are whole and short enough to be written again."""
    recent = completions.recent(s, user_id, _ANSWERS)
    return [c for c in recent if c.is_gold and c.finish_reason == "stop" and _is_short(c, gate)][:count]


def with_texts(verdict: Verdict, texts: TextVerdict) -> Verdict:
    """Return the verdict of the other gates with that of the texts."""
    figures: dict[str, float | None] = {
        "preserved": texts.preserved,
        "fabricated": texts.fabricated,
        "compliant": texts.compliant,
        "names_unjudged": texts.unjudged or None,
    }
    return verdict.and_checks(texts.checks, REASONS, figures)


def _is_short(completion: Completion, gate: GateConfig) -> bool:
    num_tokens = len(completion.prompt_token_ids) + len(completion.completion_token_ids)
    return bool(completion.text.strip()) and num_tokens <= gate.max_watched_tokens
