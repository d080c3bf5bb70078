"""Answers that heed did not write, read by the training model with the person's adapter, or by vLLM if none is trained.

log p(y_t | x, y_<t) for every token y_t of the text, in nats: to say how likely it is (`score`), or to take it for
heed's own answer, its end included, so that it can be corrected (`adopt`). Invariant: an adopted answer says that it
was given, and is never taken for on-policy.
"""

import time
import uuid
from dataclasses import asdict, dataclass

from engine.adapter_ref import AdapterRef
from engine.errors import PromptTooLongError
from engine.generation.told import Told
from engine.host.trainer_client import TrainerClient
from engine.host.vllm_host import VllmHost
from engine.prompts.builder import PromptBuilder
from engine.requests import GIVEN, GenerateRequest, GenerateResult, Likelihood
from engine.sample import Sample


@dataclass(frozen=True)
class Reading:
    """The means to read a text: the trainer, the prompts and an adapter; the host for a model that is not trained."""

    host: VllmHost
    trainer: TrainerClient
    prompts: PromptBuilder
    ref: AdapterRef

    async def logprobs(self, prompt_ids: list[int], answer_ids: list[int]) -> list[float]:
        """Return the log-probability of each token of an answer, in nats. Raises PromptTooLongError."""
        if len(answer_ids) > self.prompts.room_for(prompt_ids):
            num_tokens = len(prompt_ids) + len(answer_ids)
            raise PromptTooLongError(
                f"conversation and answer have {num_tokens} tokens; the model takes {self.prompts.max_model_len}"
            )
        if not answer_ids:
            return []
        if not self.host.trainability.can_learn:
            return await self.host.logprobs(prompt_ids, answer_ids, f"read-{uuid.uuid4().hex}")
        (score,) = await self.trainer.score([Sample("gold", prompt_ids, prompt_ids, answer_ids)], self.ref)
        return score.student_logprobs


async def score(reading: Reading, told: Told, answer: str) -> Likelihood:
    """Return the log-probabilities of a text as the answer to what was `told`, without its end; an empty text has none.

    Raises:
        PromptTooLongError: conversation and answer together are longer than what the model reads.
    """
    prompts = reading.prompts
    prompt_ids = prompts.prompt_token_ids(told.messages)
    answer_ids = prompts.answer_token_ids(answer)
    logprobs = await reading.logprobs(prompt_ids, answer_ids)
    return Likelihood(len(prompt_ids), [prompts.token_text(token_id) for token_id in answer_ids], logprobs)


async def adopt(reading: Reading, request: GenerateRequest, told: Told, text: str) -> GenerateResult:
    """Return `text` as the whole answer to `request`, read behind what was `told` of it.

    Raises:
        PromptTooLongError: conversation and answer together are longer than what the model reads.
    """
    started_s = time.perf_counter()
    prompts = reading.prompts
    prompt_ids = prompts.prompt_token_ids(told.messages)
    answer_ids = [*prompts.answer_token_ids(text), prompts.end_token_id]
    logprobs = await reading.logprobs(prompt_ids, answer_ids)
    return GenerateResult(
        text=text,
        messages=request.messages,
        notes=told.notes,
        prompt_token_ids=prompt_ids,
        completion_token_ids=answer_ids,
        logprobs=logprobs,
        adapter_version=reading.ref.number,
        sampling=asdict(request.sampling),
        finish_reason=GIVEN,
        num_cached_tokens=0,
        time_to_first_token_s=0.0,
        duration_s=time.perf_counter() - started_s,
    )
