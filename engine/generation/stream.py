"""One answer while it is written: what vLLM sends, collected into the result that is stored."""

import time
from dataclasses import asdict, dataclass, field

from engine.host.tool_calls import ToolCallReader
from engine.host.vllm_types import HostChunk
from engine.prompts.reasoning import Reasoning, ReasoningParts
from engine.requests import STOPPED, TOOLS, Delta, GenerateRequest, GenerateResult, Sampling, ToolCallPiece


@dataclass
class AnswerStream:
    """One answer while it is written: what is known before its first token, and what has come since."""

    request: GenerateRequest
    notes: list[str]  # in the prompt
    prompt_token_ids: list[int]
    adapter_version: int
    sampling: Sampling
    reasoning: Reasoning
    asked_s: float  # by `time.perf_counter`
    calls: ToolCallReader | None = None  # of the calls in its text
    _parts: list[ReasoningParts] = field(default_factory=list)
    _token_ids: list[int] = field(default_factory=list)
    _logprobs: list[float] = field(default_factory=list)
    _said: str = ""
    _first_s: float = 0.0

    def take(self, chunk: HostChunk) -> Delta:
        """Return a chunk as a delta; the last one carries the result."""
        if not self._token_ids:
            self._first_s = time.perf_counter() - self.asked_s
        parts = self.reasoning.take(chunk.text)
        if chunk.finish_reason:
            last = self.reasoning.rest()
            parts = ReasoningParts(parts.reasoning + last.reasoning, parts.text + last.text)
        said, pieces = self._read_calls(parts.text, chunk.token_ids, is_last=bool(chunk.finish_reason))
        self._parts.append(parts)
        self._token_ids += chunk.token_ids
        self._logprobs += chunk.logprobs
        result = self._result(chunk, chunk.finish_reason) if chunk.finish_reason else None
        return Delta(said, chunk.token_ids, chunk.logprobs, chunk.top_logprobs, result, parts.reasoning, pieces)

    def stopped(self, chunk: HostChunk) -> Delta:
        """Return the end of an answer that the person stopped after `chunk`, with the result so far."""
        self._parts.append(parts := self.reasoning.rest())
        said, pieces = self._read_calls(parts.text, [], is_last=True)
        return Delta(said, [], [], None, self._result(chunk, STOPPED), parts.reasoning, pieces)

    def _read_calls(self, text: str, token_ids: list[int], *, is_last: bool) -> tuple[str, list[ToolCallPiece]]:
        """Return the text outside of calls of tools, which is kept, and the calls in it."""
        said, pieces = (text, []) if self.calls is None else self.calls.take(text, token_ids, is_last=is_last)
        self._said += said
        return said, pieces

    def _result(self, chunk: HostChunk, finish_reason: str) -> GenerateResult:
        return GenerateResult(
            text="".join(parts.text for parts in self._parts),
            messages=self.request.messages,
            notes=self.notes,
            prompt_token_ids=self.prompt_token_ids,
            completion_token_ids=self._token_ids,
            logprobs=self._logprobs,
            adapter_version=self.adapter_version,
            sampling=asdict(self.sampling) | ({TOOLS: self.request.tools} if self.request.tools else {}),
            finish_reason=finish_reason,
            num_cached_tokens=chunk.num_cached_tokens,
            time_to_first_token_s=self._first_s,
            duration_s=time.perf_counter() - self.asked_s,
            reasoning="".join(parts.reasoning for parts in self._parts),
            tool_calls=self.calls.whole if self.calls is not None else [],
            said=self._said,
        )
