"""A person's approved answers, written again by a candidate before it becomes active (`engine.gates.texts`).

Owns the gold set of one consolidation. Invariant: an answer that the version before does not give any more, because
the person has asked for something else since, says nothing about the candidate and is left out.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from engine.adapter_ref import AdapterRef
from engine.config import EngineConfig, GateConfig
from engine.gates.candidate import Verdict
from engine.gates.texts import TextVerdict, Written, judge_texts
from engine.prompts.builder import PromptBuilder
from engine.prompts.hindsight import with_notes
from engine.samples import notes
from engine.samples.rollouts import RolloutStore
from storage.conversations import completions
from storage.database import Database, Session
from storage.learning import notes as note_rows
from storage.tables import Completion

ChatMessage = dict[str, str]
ROOM = 1.5  # times a gold answer's tokens that the candidate may take; one that needs more does not end
_ANSWERS = 200  # newest answers looked through
REASONS = {
    "entities kept": "answers you liked would have lost facts",
    "nothing invented": "answers you liked would have got facts of their own",
    "form kept": "answers you liked would have lost their form",
}


@dataclass(frozen=True)
class Gold:
    """An approved answer, and the conversation with the notes that would be in the prompt now."""

    messages: list[ChatMessage]
    text: str
    num_tokens: int


class ApprovedAnswers:
    """What a person liked, and what a version makes of it."""

    def __init__(
        self, config: EngineConfig, database: Database, prompts: PromptBuilder, rollouts: RolloutStore, max_len: int
    ) -> None:
        """Everything is built by the engine; `max_len`: tokens of the model's context."""
        self._config = config
        self._database = database
        self._prompts = prompts
        self._rollouts = rollouts
        self._max_len = max_len

    async def held(self, user_id: str, parent: AdapterRef) -> list[Gold]:
        """The newest approved answers that the person's version still gives."""
        count, gate = self._config.sleep.num_gold, self._config.gate
        found = await self._database.read(lambda s: approved(s, user_id, count, gate))
        live = await self._database.read(lambda s: note_rows.live(s, user_id))
        wanted = notes.prompt_notes(live, has_adapter=parent.number > 0)
        said = notes.said(wanted, self._config.note, self._max_len)
        gold = [Gold(with_notes(c.messages, said), c.text, len(c.completion_token_ids)) for c in found]
        written = await self._written(gold, parent)
        return [g for g, w in zip(gold, written, strict=True) if judge_texts([w], self._config.gate).is_accepted]

    async def judged(self, gold: Sequence[Gold], ref: AdapterRef, verdict: Verdict) -> Verdict:
        """The verdict of the other gates with that of the texts; unchanged where there is nothing to look at."""
        if not gold:
            return verdict
        return joined(verdict, judge_texts(await self._written(gold, ref), self._config.gate))

    async def _written(self, gold: Sequence[Gold], ref: AdapterRef) -> list[Written]:
        longest = max((round(ROOM * g.num_tokens) for g in gold), default=0) + 1
        answers = await self._rollouts.written(ref, [g.messages for g in gold], longest)
        return [
            Written(g.text, self._prompts.text(answer), is_ended=len(answer) < longest)
            for g, answer in zip(gold, answers, strict=True)
        ]


def approved(s: Session, user_id: str, count: int, gate: GateConfig) -> list[Completion]:
    """The newest approved answers that are whole and short enough to be written again."""
    recent = completions.recent(s, user_id, _ANSWERS)
    return [c for c in recent if c.is_gold and c.finish_reason == "stop" and _is_short(c, gate)][:count]


def joined(verdict: Verdict, texts: TextVerdict) -> Verdict:
    """One verdict out of two, the first failing gate named."""
    failed = next((name for name, is_passed in texts.checks.items() if not is_passed), None)
    figures = {"preserved": texts.preserved, "fabricated": texts.fabricated, "compliant": texts.compliant}
    return replace(
        verdict,
        is_accepted=verdict.is_accepted and failed is None,
        reason=verdict.reason or (REASONS[failed] if failed else ""),
        checks=dict(verdict.checks) | texts.checks,
        figures=dict(verdict.figures) | figures,
    )


def _is_short(completion: Completion, gate: GateConfig) -> bool:
    num_tokens = len(completion.prompt_token_ids) + len(completion.completion_token_ids)
    return bool(completion.text.strip()) and num_tokens <= gate.max_watched_tokens
