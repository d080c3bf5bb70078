"""The teacher's own answers, given as the student is meant to answer.

Invariant: where the teacher is guided they begin as the guided teacher does (`engine.training.openings`); what follows,
and every answer of another teacher, is as the model says it.
"""

from collections.abc import Sequence

from engine.adapter_ref import AdapterRef
from engine.config import LearnConfig
from engine.requests import ChatMessage
from engine.samples.context import LearningContext

Conversations = Sequence[list[ChatMessage]]


class TeacherAnswers:
    """Asks the teacher what the student will be asked."""

    def __init__(self, context: LearningContext) -> None:
        self._trainer = context.trainer
        self._prompts = context.prompts
        self._rollouts = context.rollouts

    async def to(
        self, ref: AdapterRef, asked: Conversations, seen: Conversations, learn: LearnConfig, longest: int | None = None
    ) -> list[list[int]]:
        """Return the response token ids of `ref` to conversations as the teacher sees them.

        `asked`: the same as the student sees them. An answer has at most `longest` tokens (None: `max_rollout_tokens`).
        """
        begun: Sequence[list[int]] = ()
        if learn.guidance_scale != 1 and learn.teacher == "base":
            begun = await self._begun(asked, seen, learn, longest or learn.max_rollout_tokens)
        return await self._rollouts.by_teacher(ref, seen, longest, begun)

    async def _begun(
        self, asked: Conversations, seen: Conversations, learn: LearnConfig, longest: int
    ) -> list[list[int]]:
        """Return the tokens that each answer begins with.

        Where that would be the answer's end, or a conversation is too long to be read, there are none.
        """
        views = [self._prompts.training_prompts([*pair], longest) for pair in zip(seen, asked, strict=True)]
        fitting = {place: (view[0], view[1]) for place, view in enumerate(views) if view}
        tokens = await self._trainer.first_tokens([*fitting.values()], learn)
        first = dict(zip(fitting, tokens, strict=True))
        end = self._prompts.end_token_id
        return [[first[place]] if first.get(place, end) != end else [] for place in range(len(views))]
