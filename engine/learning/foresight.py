"""Preparations for lessons, made while no lesson runs.

Before the first lesson: neutral answers, other prompts' answers, and one step of an update. About an agent's work: the
base model's answers to the tasks that a wish is tried on, once for a system message and tools, while the person looks
at the first call. Invariant: no lesson depends on it; what is not there, the lesson makes.
"""

from engine.adapter_ref import ZERO_ADAPTER
from engine.learning.intent import NUM_OTHERS, NUM_TASKS
from engine.learning.learner import Learner
from engine.prompts.tool_messages import carrying
from engine.requests import ChatMessage, GenerateRequest
from engine.samples.context import LearningContext
from storage.people import people


class Foresight:
    """Prepares lessons."""

    def __init__(self, context: LearningContext, learner: Learner) -> None:
        self._database = context.database
        self._rollouts = context.rollouts
        self._trainability = context.host.trainability
        self._learner = learner
        self._noticed: dict[str, list[ChatMessage]] = {}  # by person: how an agent's work begins, with its tools

    async def first(self) -> None:
        """Make the rollouts of the first lesson, and take a step of an update."""
        if self._trainability.can_learn:
            await self._rollouts.prepare_anchors(ZERO_ADAPTER)
            await self._learner.warm_up(await self._rollouts.prepare(ZERO_ADAPTER, [], NUM_OTHERS + 1))

    def notices(self, request: GenerateRequest) -> bool:
        """Return True if this is an agent's work whose tasks have no answers yet: `prepare` makes them."""
        begun = carrying([m for m in request.messages[:1] if m["role"] == "system"], request.tools)
        is_new = bool(begun) and self._rollouts.lacks_tasks(ZERO_ADAPTER, begun)
        if is_new:
            self._noticed[request.user_id] = begun
        return is_new

    async def prepare(self, user_id: str) -> None:
        """Answer the tasks that were noticed for a person, if they teach heed."""
        begun = self._noticed.pop(user_id, [])
        user = await self._database.read(lambda s: people.get(s, user_id))
        if begun and user.is_learning and self._rollouts.lacks_tasks(ZERO_ADAPTER, begun):
            await self._rollouts.prepare(ZERO_ADAPTER, [], NUM_TASKS + 1, begun)

    def drop(self, user_id: str) -> None:
        """Forget what was noticed for a person."""
        self._noticed.pop(user_id, None)
