"""heed's requests in vLLM's terms, and vLLM's outputs in heed's.

vLLM is imported inside the functions: its environment must be set first (`engine.host.vllm_settings`).
"""

import json
from dataclasses import dataclass
from typing import Any

from engine.adapter_ref import AdapterRef
from engine.requests import Sampling

# An answer goes round in circles: a passage of so many tokens, which shorter ones fill, is said so often.
_CIRCLE = {"min_pattern_size": 48, "max_pattern_size": 96, "min_count": 4}


@dataclass(frozen=True)
class HostChunk:
    """A piece of a stream: one decode step, or several if the reader was slower."""

    text: str
    token_ids: list[int]
    logprobs: list[float]  # at the sampling temperature; of the raw distribution when greedy
    top_logprobs: list[dict[int, float]] | None
    finish_reason: str | None  # "stop" | "length" | "abort" | REPEATED, on the last chunk
    num_cached_tokens: int


def tokens_input(token_ids: list[int]) -> Any:
    """Return a prompt that vLLM takes as it is: a raw one would go through its renderer thread."""
    from vllm import inputs

    return inputs.tokens_input(token_ids)


def in_pieces(sampling: Sampling) -> Any:
    """Return vLLM's parameters for an answer that is streamed; one that goes round in circles is ended."""
    from vllm import SamplingParams
    from vllm.sampling_params import RepetitionDetectionParams, RequestOutputKind

    form = structured(sampling)
    is_limited = not (sampling.may_repeat or sampling.logit_bias or form)
    return SamplingParams(
        structured_outputs=form,
        frequency_penalty=sampling.frequency_penalty,
        presence_penalty=sampling.presence_penalty,
        logit_bias={int(token): bias for token, bias in sampling.logit_bias.items()} or None,
        temperature=sampling.temperature,
        top_p=sampling.top_p,
        top_k=sampling.top_k,
        min_p=sampling.min_p,
        repetition_penalty=sampling.repetition_penalty,
        skip_special_tokens=not sampling.keeps_special,
        max_tokens=sampling.max_tokens,
        seed=sampling.seed,
        stop=list(sampling.stop) or None,
        logprobs=sampling.top_logprobs,
        repetition_detection=RepetitionDetectionParams(**_CIRCLE) if is_limited else None,
        output_kind=RequestOutputKind.DELTA,
    )


def structured(sampling: Sampling) -> Any:
    """Return vLLM's parameters for an answer that has to fit a grammar, or None. The grammar wins over the schema."""
    from vllm.sampling_params import StructuredOutputsParams

    if sampling.structural_tag:
        return StructuredOutputsParams(structural_tag=sampling.structural_tag)
    return None if sampling.json_schema is None else StructuredOutputsParams(json=sampling.json_schema)


def form_field(params: Any) -> str | None:
    """Return the field of a call that a grammar in vLLM's parameters comes from, if there is one."""
    form = params.structured_outputs
    if form is None:
        return None
    is_schema = form.structural_tag is None or json.loads(form.structural_tag)["format"]["type"] == "json_schema"
    return "response_format" if is_schema else "tools"


def in_one_piece(sampling: Sampling) -> Any:
    """Return vLLM's parameters for an answer that is not streamed: no output before its end, and no text."""
    from vllm.sampling_params import RequestOutputKind

    params = in_pieces(sampling)
    params.output_kind, params.detokenize = RequestOutputKind.FINAL_ONLY, False
    params.repetition_detection = None  # who asked for it looks for circles themselves
    return params


def reading_only() -> Any:
    """Return vLLM's parameters for a text that is read, token by token, and not continued."""
    from vllm import SamplingParams
    from vllm.sampling_params import RequestOutputKind

    return SamplingParams(
        temperature=0.0, max_tokens=1, prompt_logprobs=0, detokenize=False, output_kind=RequestOutputKind.FINAL_ONLY
    )


def last_logprobs(output: Any, count: int) -> list[float]:
    """Return the log-probabilities of the last `count` tokens of a prompt that was read."""
    first = len(output.prompt_token_ids) - count
    pairs = zip(output.prompt_token_ids[first:], output.prompt_logprobs[first:], strict=True)
    return [float(entries[token].logprob) for token, entries in pairs]


def lora_request(adapter: AdapterRef) -> Any:
    """Return an adapter by the name, number and path that vLLM's caches are keyed by."""
    from vllm.lora.request import LoRARequest

    return LoRARequest(adapter.name, adapter.lora_int_id, adapter.path)


def chunk_of(output: Any, sampling: Sampling) -> HostChunk:
    """Convert one output of vLLM."""
    completion = output.outputs[0]
    token_ids = list(completion.token_ids)
    steps = list(completion.logprobs or [])
    return HostChunk(
        text=completion.text,
        token_ids=token_ids,
        logprobs=[step[token].logprob for token, step in zip(token_ids, steps, strict=True)],
        top_logprobs=[{t: entry.logprob for t, entry in s.items()} for s in steps] if sampling.top_logprobs else None,
        finish_reason=completion.finish_reason,
        num_cached_tokens=output.num_cached_tokens or 0,
    )
