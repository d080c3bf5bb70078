"""engine.generation.likelihood: how likely a given answer is, on the real model."""

import pytest

from engine.errors import PromptTooLongError
from engine.requests import GenerateRequest
from tests.engine.live import Live

pytestmark = [pytest.mark.engine, pytest.mark.asyncio(loop_scope="session")]
KOALA = [{"role": "user", "content": "Tell me about the koala."}]


async def test_it_agrees_with_what_vllm_reported(live: Live) -> None:
    """The model's own answer, token by token, but for its end; with the notes it was given with."""
    user_id = await live.person()
    own = await live.result(user_id, KOALA[0]["content"])
    found = await live.engine.score(GenerateRequest(user_id, KOALA), own.text)
    assert "".join(found.tokens) == own.text
    assert found.num_prompt_tokens == len(own.prompt_token_ids)
    differences = [abs(a - b) for a, b in zip(found.logprobs, own.logprobs[: len(found.logprobs)], strict=True)]
    assert sum(differences) / len(differences) <= 0.02


async def test_another_answer_is_less_likely(live: Live) -> None:
    """So is the same one with its words turned round."""
    user_id = await live.person()
    own = await live.result(user_id, KOALA[0]["content"])
    turned = " ".join(reversed(own.text.split()))
    likely, odd = [await live.engine.score(GenerateRequest(user_id, KOALA), text) for text in (own.text, turned)]
    assert sum(odd.logprobs) < sum(likely.logprobs) - 10


async def test_what_is_too_long_is_refused_and_nothing_scores_nothing(live: Live) -> None:
    """Named with its length; an empty answer has no tokens."""
    user_id = await live.person()
    with pytest.raises(PromptTooLongError, match="tokens; the model takes"):
        await live.engine.score(GenerateRequest(user_id, KOALA), "koala " * live.host.max_model_len)
    assert (await live.engine.score(GenerateRequest(user_id, KOALA), "")).tokens == []
