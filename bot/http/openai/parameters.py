"""The parameters of OpenAI's and vLLM's servers that heed refuses by name, each with the reason.

A parameter that would change the answer is honoured or refused, never ignored. Fields that are in no table are no
parameters of these servers, and are ignored.
"""

from collections.abc import Mapping
from typing import Any

from aiohttp import web

from bot.errors import NotSupported
from bot.http.protocol import bodies
from bot.http.protocol.bodies import BodyT

_OF_VLLM = "heed does not take this parameter of vLLM's server. Leave out {name}."
REFUSED: dict[str, str] = {
    "audio": "heed writes words. Leave out {name}.",
    "function_call": "{name} is OpenAI's older form. Use tool_choice.",
    "functions": "{name} is OpenAI's older form. Use tools.",
    "metadata": "heed keeps no metadata. Leave out {name}.",
    "moderation": "heed does not moderate. Leave out {name}.",
    "prediction": "heed makes no use of a predicted answer. Leave out {name}.",
    "prompt_cache_options": "heed caches prompts by itself. Leave out {name}.",
    "reasoning_effort": "The operator decides if the model thinks. Leave out {name}.",
    "safety_identifier": "heed names people in user. Leave out {name}.",
    "web_search_options": "heed does not search the web. Leave out {name}.",
} | dict.fromkeys(
    (
        "add_generation_prompt", "allowed_token_ids", "bad_words", "chat_template", "chat_template_kwargs",
        "continue_final_message", "documents", "guided_choice", "guided_grammar", "guided_json", "guided_regex",
        "ignore_eos", "include_stop_str_in_output", "length_penalty", "min_tokens", "prompt_logprobs",
        "repetition_detection", "stop_token_ids", "structured_outputs", "thinking_token_budget",
        "truncate_prompt_tokens", "use_beam_search",
    ),
    _OF_VLLM,
)  # fmt: skip


async def read(request: web.Request, kind: type[BodyT]) -> BodyT:
    """Return a call's body as `kind`. Raises MalformedRequest, InvalidField, or NotSupported for what is refused."""
    data = await bodies.read_object(request)
    refuse(data)
    return bodies.checked(kind, data)


def refuse(body: Mapping[str, Any]) -> None:
    """Raise NotSupported for the first field of a body that heed cannot honour; `null` asks for nothing."""
    for name, sentence in REFUSED.items():
        if body.get(name) is not None:
            raise NotSupported(sentence.format(name=name), name)
