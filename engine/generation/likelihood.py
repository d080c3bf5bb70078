"""How likely an answer is that somebody else has written, read by the training model beside vLLM.

log p(y_t | x, y_<t) for every token y_t of the answer, in nats, with the person's adapter; its end is not among them.
"""

from collections.abc import Sequence

from engine.adapter_ref import AdapterRef
from engine.errors import PromptTooLongError
from engine.host.trainer_client import TrainerClient
from engine.host.vllm_host import VllmHost
from engine.prompts.builder import ChatMessage, PromptBuilder
from engine.requests import Likelihood
from engine.sample import Sample


async def likelihood(
    host: VllmHost, prompts: PromptBuilder, messages: Sequence[ChatMessage], answer: str, ref: AdapterRef
) -> Likelihood:
    """The log-probabilities of a text as the answer to `messages`; an empty text has none.

    Raises:
        PromptTooLongError: conversation and answer together are longer than what the model reads.
    """
    prompt_ids, answer_ids = prompts.prompt_token_ids(messages), prompts.answer_token_ids(answer)
    logprobs = await logprobs_of(host, prompts, prompt_ids, answer_ids, ref)
    return Likelihood(len(prompt_ids), [prompts.token_text(token_id) for token_id in answer_ids], logprobs)


async def logprobs_of(
    host: VllmHost, prompts: PromptBuilder, prompt_ids: list[int], answer_ids: list[int], ref: AdapterRef
) -> list[float]:
    """The log-probability of each token of an answer, in nats. Raises PromptTooLongError."""
    if len(answer_ids) > prompts.room_for(prompt_ids):
        num_tokens = len(prompt_ids) + len(answer_ids)
        raise PromptTooLongError(
            f"conversation and answer have {num_tokens} tokens; the model takes {host.max_model_len}"
        )
    if not answer_ids:
        return []
    sample = Sample("gold", prompt_ids, prompt_ids, answer_ids)
    (score,) = await TrainerClient(host).score([sample], ref)
    return score.student_logprobs
