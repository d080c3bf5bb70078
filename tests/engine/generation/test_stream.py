"""Tests of the answer stream: chunks of vLLM collected into one result."""

from engine.generation.stream import AnswerStream
from engine.host.vllm_types import HostChunk
from engine.prompts.reasoning import Reasoning
from engine.requests import GenerateRequest, Sampling

ASK = [{"role": "user", "content": "hi"}]


def stream(*, is_thinking: bool = False) -> AnswerStream:
    """Return the stream of an answer to "hi"."""
    request = GenerateRequest("ana", ASK)
    return AnswerStream(request, ["no emoji"], [1, 2], 3, Sampling(), Reasoning(is_open=is_thinking), 0.0)


def chunk(text: str, token_id: int, finish_reason: str | None = None) -> HostChunk:
    """Return one token's chunk."""
    return HostChunk(text, [token_id], [-0.5], None, finish_reason=finish_reason, num_cached_tokens=1)


def test_only_the_last_delta_has_the_result() -> None:
    """The result carries every token, the notes in the prompt and the version that answered."""
    answer = stream()
    first, last = answer.take(chunk("Hel", 7)), answer.take(chunk("lo", 8, "stop"))
    assert (first.text, first.result, last.text) == ("Hel", None, "lo")
    assert last.result is not None
    assert (last.result.text, last.result.completion_token_ids, last.result.logprobs) == ("Hello", [7, 8], [-0.5, -0.5])
    assert (last.result.notes, last.result.prompt_token_ids, last.result.adapter_version) == (["no emoji"], [1, 2], 3)


def test_thoughts_are_kept_apart() -> None:
    """Reasoning before the answer is no part of its text."""
    answer = stream(is_thinking=True)
    answer.take(chunk("hm</think>", 7))
    last = answer.take(chunk("Hello", 8, "stop"))
    assert last.result is not None
    assert (last.result.reasoning, last.result.text.strip()) == ("hm", "Hello")


def test_a_stopped_answer_has_what_came_so_far() -> None:
    """Its result has a reason of its own, and the thoughts that were under way."""
    answer = stream()
    last = chunk("Hel", 7)
    answer.take(last)
    ended = answer.stopped(last)
    assert ended.result is not None
    assert (ended.result.text, ended.result.completion_token_ids, ended.result.finish_reason) == ("Hel", [7], "stopped")
    assert ended.token_ids == []
