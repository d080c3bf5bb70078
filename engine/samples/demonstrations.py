"""Demonstrations by a lesson's teacher: whole answers to a few topics, and the beginnings of answers to many.

Owns how many of each, and how many chats a lesson about an agent's work holds to what they were. Whether a wish is
followed is mostly decided in an answer's first tokens, which cost a tenth of the whole; where answers are short there
are more whole ones, for about as much work (ADR 26). Invariant: together the whole answers weigh as much as
`num_teacher_rollouts` of them, however many they are.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from engine.adapter_ref import AdapterRef
from engine.config import LearnConfig
from engine.config.learning import OPENING_TOKENS
from engine.prompts.builder import PromptBuilder
from engine.prompts.tool_messages import carried
from engine.requests import ChatMessage
from engine.sample import Sample
from engine.samples import lessons
from engine.samples.rollouts import RolloutStore
from storage.tables import Completion

OPENING_LENGTH = 2 * OPENING_TOKENS  # tokens of an answer that is only begun
NUM_CHATS = 3
_OPENING_WEIGHT = 0.25  # of a whole answer's


@dataclass(frozen=True)
class Demonstrations:
    """The answers of one lesson's teacher."""

    rollouts: RolloutStore
    prompts: PromptBuilder
    learn: LearnConfig
    ref: AdapterRef  # that says them
    seen: Callable[[list[ChatMessage]], list[ChatMessage]]  # a conversation as the teacher sees it
    recent: Sequence[Completion] = ()  # answers to the person, newest first: theirs are as long as these
    like: Sequence[ChatMessage] = ()  # the conversation that was corrected: topics are of its kind

    async def whole(self, given: Sequence[list[ChatMessage]]) -> list[Sample]:
        """Return answers to the given conversations and to topics of the bank.

        As many are asked for as there may be, all at once, and left out if the answers are long, but for the given
        ones. Where too many teach nothing, further topics are asked about, once.
        """
        most = max(self.learn.num_teacher_rollouts, self.learn.max_teacher_rollouts, len(given))
        asked = self.rollouts.with_topics(given, most, self.recent, self.like)
        samples = await self.to(asked)
        samples = samples[: max(num_answers(samples, self.learn), len(given))]
        missing = max(0, self.learn.num_teacher_rollouts - len(samples))
        further = self.rollouts.with_topics(asked, len(asked) + missing, self.recent, self.like)[len(asked) :]
        samples += await self.to([messages for messages in further if messages not in asked])
        weight = min(1.0, self.learn.num_teacher_rollouts / max(1, len(samples)))
        return [replace(sample, weight=weight) for sample in samples]

    async def openings(self) -> list[Sample]:
        """Return how answers to many topics begin; those that repeat themselves already are left out."""
        asked = self.rollouts.with_topics([], self.learn.num_openings, self.recent, self.like)
        begun = [s for s in await self.to(asked, OPENING_LENGTH) if not any(lessons.repeated(s.response_ids))]
        return [replace(sample, kind="opening", weight=_OPENING_WEIGHT) for sample in begun]

    async def chats(self, parent: AdapterRef) -> list[Sample]:
        """Return chats that stay as the parent answers them, where the lesson is about an agent's work."""
        found = await self.rollouts.take(parent, [], NUM_CHATS) if carried(self.like) else []
        return lessons.steady_samples(found, self.prompts)

    async def to(self, asked: Sequence[list[ChatMessage]], longest: int | None = None) -> list[Sample]:
        """Return the answers to these conversations, at most as long as most of the person's own are."""
        seen = [self.seen(messages) for messages in asked]
        longest = longest or self.rollouts.length_for(self.recent)
        responses = await self.rollouts.as_taught(self.ref, asked, seen, self.learn, longest)
        return lessons.teacher_samples(asked, seen, responses, self.prompts)


def num_answers(samples: Sequence[Sample], learn: LearnConfig) -> int:
    """Return how many answers as long as these a lesson has: for the work of `num_teacher_rollouts` long ones."""
    tokens = sum(len(sample.response_ids) for sample in samples)
    fitting = learn.num_teacher_rollouts * learn.max_rollout_tokens * len(samples) // max(1, tokens)
    return max(learn.num_teacher_rollouts, min(fitting, learn.max_teacher_rollouts))
