"""Other prompts, whose answers a remark about one answer must leave as they are.

A remark is taught on its own prompt, and other prompts are held to what the version before answers. Whether they are is
seen in greedy answers alone: a shift too small for any bound on divergences turns one word, and with it the rest.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

from engine.adapter_ref import AdapterRef
from engine.config import LearnConfig
from engine.gates.candidate import Verdict
from engine.requests import ChatMessage
from engine.samples.rollouts import RolloutStore

NUM_BYSTANDERS = 8
CHECK = "bystanders"
REASON = "Done for this answer alone: learning it would have changed others, too."


@dataclass(frozen=True)
class Bystanders:
    """The other prompts of one lesson, and the version that answered them before it."""

    rollouts: RolloutStore
    parent: AdapterRef
    conversations: Sequence[list[ChatMessage]]
    longest: int  # tokens of an answer that are looked at

    @classmethod
    def of(cls, rollouts: RolloutStore, parent: AdapterRef, asked: Sequence[ChatMessage], learn: LearnConfig) -> Self:
        """Return topics of the bank, none of them what was asked, with answers as long as rollouts."""
        topics = rollouts.with_topics([], NUM_BYSTANDERS + 1)
        others = [messages for messages in topics if messages[-1]["content"] != asked[-1]["content"]]
        return cls(rollouts, parent, others[:NUM_BYSTANDERS], learn.max_rollout_tokens)

    async def examine(self, candidate: AdapterRef, verdict: Verdict) -> Verdict:
        """Return the verdict with one more check: the candidate answers every other prompt as the parent does."""
        before, after = [
            await self.rollouts.greedy_answers(ref, self.conversations, self.longest)
            for ref in (self.parent, candidate)
        ]
        changed = sum(old != new for old, new in zip(before, after, strict=True))
        return verdict.and_checks({CHECK: not changed}, {CHECK: REASON}, {"changed_others": float(changed)})
