"""Tests of answers that heed did not write, on the real model."""

import pytest

from engine.errors import PromptTooLongError
from engine.requests import GIVEN, GenerateRequest, GenerateResult
from engine.samples.rollouts import own_rollouts
from storage.conversations import completions
from storage.tables import Completion
from tests.engine.live import Live

pytestmark = [pytest.mark.engine, pytest.mark.asyncio(loop_scope="session")]
KOALA = [{"role": "user", "content": "Tell me about the koala."}]


async def stored(live: Live, user_id: str, result: GenerateResult) -> Completion:
    """Store a given answer as the chat side does."""
    names = ("messages", "notes", "prompt_token_ids", "completion_token_ids", "logprobs", "text", "adapter_version",
             "sampling", "finish_reason")  # fmt: skip
    row = Completion(user_id=user_id, **{name: getattr(result, name) for name in names})
    return await live.database.write(lambda s: completions.add(s, row))


async def test_heeds_own_words_are_read_as_they_were_written(live: Live) -> None:
    """The tokens are the same, the end included, and the log-probabilities nearly vLLM's own."""
    user_id = await live.person()
    own = await live.result(user_id, KOALA[0]["content"])
    found = await live.engine.adopt(GenerateRequest(user_id, KOALA), own.text)
    assert found.completion_token_ids == own.completion_token_ids
    assert found.prompt_token_ids == own.prompt_token_ids
    assert found.finish_reason == GIVEN
    differences = [abs(a - b) for a, b in zip(found.logprobs, own.logprobs, strict=True)]
    assert sum(differences) / len(differences) <= 0.02


async def test_a_given_answer_can_be_corrected(live: Live) -> None:
    """A lesson about words that heed never said is learned and shows in its answers."""
    user_id = await live.person()
    text = "The koala is a fine animal of Australia \U0001f600 and it eats leaves \U0001f600"
    answer = await stored(live, user_id, await live.engine.adopt(GenerateRequest(user_id, KOALA), text))
    outcome = await live.teach(answer, "no emoji please")
    assert outcome.status == "learned", outcome
    assert own_rollouts([answer], 0) == []


async def test_what_is_too_long_is_refused(live: Live) -> None:
    """It is refused before anything is read."""
    user_id = await live.person()
    with pytest.raises(PromptTooLongError, match="tokens; the model takes"):
        await live.engine.adopt(GenerateRequest(user_id, KOALA), "koala " * live.host.max_model_len)


async def test_it_agrees_with_what_vllm_reported(live: Live) -> None:
    """The model's own answer agrees token by token, except for its end, with the notes it was given with."""
    user_id = await live.person()
    own = await live.result(user_id, KOALA[0]["content"])
    found = await live.engine.score(GenerateRequest(user_id, KOALA), own.text)
    assert "".join(found.tokens) == own.text
    assert found.num_prompt_tokens == len(own.prompt_token_ids)
    differences = [abs(a - b) for a, b in zip(found.logprobs, own.logprobs[: len(found.logprobs)], strict=True)]
    assert sum(differences) / len(differences) <= 0.02


async def test_another_answer_is_less_likely(live: Live) -> None:
    """The same answer with its words turned round is less likely, too."""
    user_id = await live.person()
    own = await live.result(user_id, KOALA[0]["content"])
    turned = " ".join(reversed(own.text.split()))
    likely, odd = [await live.engine.score(GenerateRequest(user_id, KOALA), text) for text in (own.text, turned)]
    assert sum(odd.logprobs) < sum(likely.logprobs) - 10


async def test_what_is_too_long_to_score_is_refused_and_nothing_scores_nothing(live: Live) -> None:
    """The error names the length; an empty answer has no tokens."""
    user_id = await live.person()
    with pytest.raises(PromptTooLongError, match="tokens; the model takes"):
        await live.engine.score(GenerateRequest(user_id, KOALA), "koala " * live.host.max_model_len)
    assert (await live.engine.score(GenerateRequest(user_id, KOALA), "")).tokens == []
