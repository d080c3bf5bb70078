"""The trial of an imported adapter: it answers neutral prompts before it may answer a person.

Owns which prompts these are and how much is read; `engine.gates.imported` judges. Invariant: the adapter is in vLLM and
no person's active version while it is tried.
"""

import asyncio
import uuid

from engine.adapter_ref import ZERO_ADAPTER, AdapterRef
from engine.errors import AdapterRefused
from engine.gates import imported
from engine.samples.context import LearningContext

NUM_PROMPTS = 8
MAX_TOKENS = 48  # of each answer


class ImportTrial:
    """Tries adapters."""

    def __init__(self, context: LearningContext) -> None:
        self._host = context.host
        self._rollouts = context.rollouts

    async def check(self, ref: AdapterRef) -> None:
        """Raise AdapterRefused if the adapter's answers are garbage. Raises EngineRestarting."""
        asked = await self._rollouts.anchors(ZERO_ADAPTER, NUM_PROMPTS)
        answers = await self._rollouts.greedy_answers(ref, [rollout.messages for rollout in asked], MAX_TOKENS)
        prompts = [rollout.prompt_token_ids for rollout in asked]
        read = await asyncio.gather(*map(self._logprobs, prompts, answers))
        if reason := imported.refusal(read, self._host.vocab_size):
            raise AdapterRefused(reason)

    async def _logprobs(self, prompt: list[int], answer: list[int]) -> list[float]:
        """Return the base model's log-probability of each token of an answer, in nats."""
        return await self._host.logprobs(prompt, answer, f"trial-{uuid.uuid4().hex}") if answer else []
