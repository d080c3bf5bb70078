"""An answer that heed did not write, as if it had: token ids and log-probabilities, so that it can be corrected.

log p(y_t | x, y_<t) for every token y_t of the text and for its end, in nats, read by the training model with the
person's adapter. Invariant: what comes out says that it was given, and is never taken for on-policy.
"""

import time
from collections.abc import Sequence
from dataclasses import asdict

from engine.adapter_ref import AdapterRef
from engine.generation.likelihood import logprobs_of
from engine.host.vllm_host import VllmHost
from engine.prompts.builder import PromptBuilder
from engine.prompts.hindsight import with_notes
from engine.requests import GIVEN, GenerateRequest, GenerateResult


async def given(
    host: VllmHost, prompts: PromptBuilder, request: GenerateRequest, notes: Sequence[str], text: str, ref: AdapterRef
) -> GenerateResult:
    """`text` as the whole answer to `request`, read with the notes in the prompt.

    Raises:
        PromptTooLongError: conversation and answer together are longer than what the model reads.
    """
    started_s = time.perf_counter()
    prompt_ids = prompts.prompt_token_ids(with_notes(request.messages, notes))
    answer_ids = [*prompts.answer_token_ids(text), host.tokenizer.eos_token_id]
    logprobs = await logprobs_of(host, prompts, prompt_ids, answer_ids, ref)
    return GenerateResult(
        text=text,
        messages=request.messages,
        notes=list(notes),
        prompt_token_ids=prompt_ids,
        completion_token_ids=answer_ids,
        logprobs=logprobs,
        adapter_version=ref.number,
        sampling=asdict(request.sampling),
        finish_reason=GIVEN,
        num_cached_tokens=0,
        time_to_first_token_s=0.0,
        duration_s=time.perf_counter() - started_s,
    )
